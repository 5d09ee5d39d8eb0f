-- grain: corpus x contrast x bin of 0.1 nats, words that are common enough to have a stable delta
SELECT
    corpus, contrast, floor(delta_nats / 0.1)::BIGINT AS bin, count(*) AS n_words,
    count(*) FILTER (least(n_pair_f, n_pair_m) IS NULL) AS n_unknown
FROM word_delta SEMI JOIN shown_contrast USING (corpus, contrast)
WHERE isfinite(delta_nats)
    AND coalesce(least(n_pair_f, n_pair_m), $min_pairs) >= $min_pairs
GROUP BY ALL
ORDER BY ALL;
