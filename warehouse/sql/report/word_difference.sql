-- grain: corpus_a x corpus_b x contrast x word, $top words of every two corpora, surest first
SELECT *
FROM word_difference
WHERE coalesce(n_least, $min_pairs) >= $min_pairs AND contrast IN (FROM main_contrast)
QUALIFY row_number() OVER (
    PARTITION BY corpus_a, corpus_b, contrast
    ORDER BY abs(difference_bound_nats) DESC, abs(difference_nats) DESC, word
) <= $top
ORDER BY
    corpus_a, corpus_b, contrast,
    abs(difference_bound_nats) DESC, abs(difference_nats) DESC, word;
