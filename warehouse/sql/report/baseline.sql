-- grain: benchmark x groups with a baseline: its pairs that have one, and the first baseline
SELECT
    benchmark,
    group_a || '/' || group_b AS groups,
    count(*) AS n_pairs,
    arg_min(baseline_a, pair_id) AS baseline_a,
    arg_min(baseline_b, pair_id) AS baseline_b
FROM benchmark_pair
WHERE baseline_a IS NOT NULL AND is_natural IS NOT FALSE
GROUP BY ALL
ORDER BY ALL;
