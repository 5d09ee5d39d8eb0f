-- grain: corpus_a x corpus_b x contrast, those that agree least first
FROM corpus_agreement(min_pairs := $min_pairs)
WHERE n_words > 1 AND contrast IN (SELECT contrast FROM shown_contrast)
ORDER BY correlation NULLS LAST, contrast, corpus_a, corpus_b;
