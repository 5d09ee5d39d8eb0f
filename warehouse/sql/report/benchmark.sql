-- grain: benchmark x groups: its pairs that aren't marked unnatural, their words and their files
-- example: the shortest pair.
SELECT
    benchmark, group_a || '/' || group_b AS groups, count(*) AS n_pairs,
    count(DISTINCT word) AS n_words, list_sort(list(DISTINCT source_file)) AS sources,
    arg_min({'a': sentence_a, 'b': sentence_b}, (length(sentence_a), pair_id)) AS example
FROM benchmark_pair
WHERE is_natural IS NOT FALSE
GROUP BY ALL
ORDER BY ALL;
