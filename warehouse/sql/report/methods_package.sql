-- grain: package used by finished runs, Plumbline itself first; commits: those of Plumbline
WITH finished AS (FROM run WHERE status = 'finished')
SELECT
    replace(package.key, 'plumbline-lm', 'Plumbline') AS package,
    list_sort(list(DISTINCT package.value ->> '$')) AS versions,
    (SELECT list_sort(list(DISTINCT git_commit) FILTER (git_commit <> '')) FROM finished) AS commits,
    (SELECT count(*) FROM finished) AS n_runs
FROM finished, json_each(packages) AS package
GROUP BY package.key
ORDER BY package.key <> 'plumbline-lm', package.key;
