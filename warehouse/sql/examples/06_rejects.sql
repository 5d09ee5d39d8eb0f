-- grain: stage x subject x reason
-- Which input was rejected, and why?
-- All input was either counted, imported or scored, or is listed here. place is the first of n
-- rows, excerpt its start. A shard that can't be read is one row.
SELECT
    stage, subject, reason, count(*) AS n,
    arg_min(concat_ws(', row ', source_file, source_row), (source_file, source_row)) AS place,
    arg_min(excerpt, (source_file, source_row)) AS excerpt
FROM (
    FROM reject
    UNION ALL BY NAME
    SELECT 'count' AS stage, corpus AS subject, shard AS source_file, error AS reason
    FROM corpus_shard
    WHERE status = 'failed'
)
GROUP BY stage, subject, reason
ORDER BY n DESC, stage, subject, reason;
