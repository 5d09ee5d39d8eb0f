-- grain: corpus_a x corpus_b x contrast x word, $top words of every two corpora, surest first
SELECT *
FROM word_difference
WHERE contrast IN (SELECT contrast FROM shown_contrast)
    AND (
        coalesce(n_least, $min_pairs) >= $min_pairs
        OR (difference_nats_low IS NOT NULL AND difference_bound_nats <> 0)
    )
QUALIFY row_number() OVER (
    PARTITION BY corpus_a, corpus_b, contrast
    ORDER BY abs(difference_bound_nats) DESC, abs(difference_nats) DESC, word
) <= $top
ORDER BY
    corpus_a, corpus_b, contrast,
    abs(difference_bound_nats) DESC, abs(difference_nats) DESC, word;
