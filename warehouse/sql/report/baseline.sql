-- grain: benchmark with a baseline: its pairs that have one, and the first of them in a neutral sentence
SELECT
    regexp_replace(benchmark, '-baseline$', '') AS benchmark,
    count(*) AS n_pairs,
    arg_min(sentence_a, pair_id) AS sentence_a,
    arg_min(sentence_b, pair_id) AS sentence_b
FROM benchmark_pair
WHERE ends_with(benchmark, '-baseline') AND is_natural IS FALSE
GROUP BY ALL
ORDER BY ALL;
