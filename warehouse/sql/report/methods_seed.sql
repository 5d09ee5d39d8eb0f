-- grain: command whose finished runs or their steps were given a seed
SELECT command, list_sort(list(DISTINCT option.value ->> '$')) AS seeds
FROM run, json_tree(config) AS option
WHERE status = 'finished' AND option.key = 'seed' AND option.type <> 'NULL'
GROUP BY command
ORDER BY command;
