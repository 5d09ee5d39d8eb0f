-- grain: shard x line that was rejected more than once
SELECT source_file, source_row, count(*) AS n_rows
FROM reject WHERE stage = 'count' AND subject = $corpus
GROUP BY source_file, source_row HAVING count(*) > 1;
