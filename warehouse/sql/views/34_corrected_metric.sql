-- grain: row of `metric_value`, except for older versions of named models
-- `metric_value` with q: p corrected by Holm's method for all results in a list. A list has all
-- models' results for one metric, benchmark, groups, text, subset and options. With 95%
-- probability, no result of a list with q <= 0.05 is a false positive. q is NULL if p is.
CREATE OR REPLACE VIEW corrected_metric AS
WITH tested AS (
    SELECT
        *,
        p * (count(p) OVER list - row_number() OVER (list ORDER BY p, model_key) + 1) AS p_scaled
    FROM metric_value
    WHERE model_key NOT IN (SELECT model_key FROM model_version WHERE NOT is_latest)
    WINDOW list AS (PARTITION BY metric, benchmark, groups, corpus, contrast, subset, options)
)
SELECT
    * EXCLUDE p_scaled,
    CASE
        WHEN p IS NOT NULL
            THEN least(1, max(p_scaled) OVER (
                PARTITION BY metric, benchmark, groups, corpus, contrast, subset, options
                ORDER BY p, model_key
            ))
    END AS q
FROM tested;
