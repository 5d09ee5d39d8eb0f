-- grain: benchmark x groups x pair_id, in this order: natural pairs
SELECT benchmark, group_a || '/' || group_b AS groups, pair_id, c.cluster_1, c.cluster_2, c.stratum
FROM benchmark_pair
JOIN pair_cell AS c USING (benchmark, pair_id)
WHERE is_natural IS NOT FALSE
ORDER BY ALL;
