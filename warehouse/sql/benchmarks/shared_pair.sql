-- grain: pair_id of $benchmark, in this order
-- The pairs with their MaxPMI ($contrast) in $corpus. has_max_pmi: whether any pair was constrained;
-- is_within: whether a pair meets |MaxPMI| <= $eta_nats, true if $eta_nats is NULL.
SELECT
    p.*, a.max_pmi_nats, a.max_pmi_word, count(a.pair_id) OVER () > 0 AS has_max_pmi,
    $eta_nats IS NULL
    OR coalesce(meets_constraint(a.max_pmi_nats, a.n_words_unknown, $eta_nats::DOUBLE), false)
        AS is_within
FROM benchmark_pair AS p
LEFT JOIN pair_association AS a
    ON a.benchmark = p.benchmark AND a.pair_id = p.pair_id
    AND a.corpus = $corpus AND a.contrast = $contrast
WHERE p.benchmark = $benchmark
ORDER BY p.pair_id;
