-- grain: benchmark x groups x pair_id of $benchmark, of all if it is NULL: natural pairs, in this order
SELECT benchmark, group_a || '/' || group_b AS groups, pair_id, c.cluster_1, c.cluster_2, c.stratum
FROM benchmark_pair
JOIN pair_cell AS c USING (benchmark, pair_id)
WHERE benchmark = coalesce($benchmark, benchmark) AND is_natural IS NOT FALSE
ORDER BY ALL;
