-- grain: corpus_a x corpus_b x contrast, those that agree least first
FROM corpus_agreement(min_pairs := $min_pairs)
WHERE contrast IN (SELECT contrast FROM shown_contrast)
ORDER BY contrast, correlation NULLS LAST, corpus_a, corpus_b;
