-- grain: command x table_name: the last two finished runs of each command and their rows by table
-- table_name is NULL if neither has rows in a table with a run_id. Rows that a later run replaced
-- no longer count for the earlier one.
WITH ranked AS (
    SELECT
        command, run_id,
        row_number() OVER (PARTITION BY command ORDER BY started_at DESC, run_id DESC) AS recency
    FROM run
    WHERE status = 'finished'
),
last_two AS (
    SELECT command, b.run_id AS run_before, l.run_id AS run_last
    FROM ranked AS l
    JOIN ranked AS b USING (command)
    WHERE l.recency = 1 AND b.recency = 2
)
SELECT
    command, run_before, run_last, w.table_name,
    coalesce(sum(n_rows) FILTER (w.run_id = run_before), 0)::BIGINT AS n_rows_before,
    coalesce(sum(n_rows) FILTER (w.run_id = run_last), 0)::BIGINT AS n_rows_last
FROM last_two
LEFT JOIN run_written AS w ON w.run_id IN (run_before, run_last)
GROUP BY ALL
ORDER BY run_last, command, w.table_name;
