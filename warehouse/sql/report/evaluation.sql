-- grain: model_key x benchmark, with metrics
-- When the model's pairs were last scored (NULL for scores from elsewhere), and when its metrics were
-- last computed and by whom (`author` of the run).
WITH scored AS (
    SELECT model_key, benchmark, max(started_at) AS scored_at
    FROM pair_score
    JOIN run USING (run_id)
    WHERE NOT contains(command, 'import')
    GROUP BY ALL
)
SELECT
    m.model_key, m.benchmark, any_value(scored_at) AS scored_at,
    max(started_at) AS measured_at, max_by(author, started_at) AS author
FROM metric_value AS m
LEFT JOIN run USING (run_id)
LEFT JOIN scored AS s ON s.model_key = m.model_key AND s.benchmark = m.benchmark
WHERE m.model_key <> ''
GROUP BY ALL
ORDER BY ALL;
