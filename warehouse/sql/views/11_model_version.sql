-- grain: model_key with a name
-- The versions of each named model (`score --name`), dated by the first score of their key. Pages,
-- ranks and corrected q use only the latest version. previous_key is NULL for the first.
CREATE OR REPLACE VIEW model_version AS
SELECT
    model_key, name, run_id, r.started_at AS scored_at,
    lag(model_key) OVER same_name AS previous_key,
    lag(r.started_at) OVER same_name AS previous_scored_at,
    lead(model_key) OVER same_name IS NULL AS is_latest
FROM model
LEFT JOIN run AS r USING (run_id)
WHERE name IS NOT NULL
WINDOW same_name AS (PARTITION BY name ORDER BY run_id, model_key);
