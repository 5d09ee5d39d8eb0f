-- grain: corpus_a x corpus_b x contrast x word, $top words of each two corpora, surest first
-- By the end of the interval that is nearer 0; by the difference itself where there is no interval.
SELECT *
FROM word_difference
WHERE coalesce(n_least, $min_pairs) >= $min_pairs AND contrast IN (FROM main_contrast)
QUALIFY row_number() OVER (
    PARTITION BY corpus_a, corpus_b, contrast
    ORDER BY
        se_nats IS NULL,
        abs(difference_nats) - coalesce(z975() * se_nats, 0) DESC,
        word
) <= $top
ORDER BY
    corpus_a, corpus_b, contrast, se_nats IS NULL,
    abs(difference_nats) - coalesce(z975() * se_nats, 0) DESC, word;
