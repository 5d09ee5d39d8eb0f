-- grain: model_key with a name
-- The versions of each named model (`score --name`), dated by the first score of their key. The
-- version that `score` used last is the latest: pages, ranks and corrected q use only this one.
-- previous_key is the version used last among those with an earlier date; NULL for the first.
CREATE OR REPLACE VIEW model_version AS
WITH used AS (
    SELECT model_key, name, model.run_id AS last_run_id, least(first_run_id, last_run_id) AS run_id
    FROM model
    LEFT JOIN (
        SELECT model_key, min(run_id) AS first_run_id FROM pair_score GROUP BY model_key
    ) USING (model_key)
    WHERE name IS NOT NULL
)
SELECT
    model_key, name, run_id, r.started_at AS scored_at,
    arg_max(model_key, last_run_id) OVER earlier AS previous_key,
    arg_max(r.started_at, last_run_id) OVER earlier AS previous_scored_at,
    row_number() OVER (PARTITION BY name ORDER BY last_run_id DESC, model_key DESC) = 1 AS is_latest
FROM used
LEFT JOIN run AS r USING (run_id)
WINDOW earlier AS (
    PARTITION BY name ORDER BY run_id, model_key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
);
