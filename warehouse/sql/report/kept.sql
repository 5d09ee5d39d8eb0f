-- grain: corpus x contrast x benchmark x groups x eta from 0 to 2 nats
SELECT
    a.corpus, a.contrast, a.benchmark, b.group_a || '/' || b.group_b AS groups,
    g.step / 50 AS eta_nats,
    count(*) AS n,
    count(*) FILTER (verdict = 'kept') AS n_kept,
    count(*) FILTER (verdict = 'dropped') AS n_dropped,
    count(*) FILTER (verdict = 'undecided') AS n_undecided,
    sum(a.n_words_defined) / nullif(sum(a.n_words), 0) AS known_share,
    min(a.least_count) AS least_count
FROM pair_association AS a
JOIN benchmark_pair AS b USING (benchmark, pair_id)
CROSS JOIN range(0, 101) AS g (step)
CROSS JOIN LATERAL (
    SELECT constraint_verdict(a.max_pmi_nats, a.n_words_unknown, g.step / 50) AS verdict
)
WHERE b.is_natural IS NOT FALSE
GROUP BY ALL
ORDER BY ALL;
