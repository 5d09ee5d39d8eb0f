-- grain: benchmark with scores or choices
SELECT
    benchmark,
    array_to_string(list_sort(list(DISTINCT group_a || '/' || group_b)), ', ') AS groups,
    count(*) FILTER (is_natural IS NOT FALSE) AS n_pairs,
    count(*) FILTER (is_natural IS FALSE) AS n_unnatural,
    (
        SELECT any_value(said) FROM benchmark_fact
        WHERE fact = 'Source' AND benchmark = benchmark_pair.benchmark
    ) AS source
FROM benchmark_pair
WHERE benchmark IN (SELECT benchmark FROM pair_score UNION SELECT benchmark FROM pair_choice)
GROUP BY benchmark
ORDER BY benchmark;
