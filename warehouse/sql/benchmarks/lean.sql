-- grain: groups x model_key x place of $benchmark, in this order
-- place is the pair's position in cell.sql. Older versions of named models are left out.
WITH cell AS (
    SELECT
        group_a || '/' || group_b AS groups, pair_id,
        row_number() OVER (PARTITION BY group_a || '/' || group_b ORDER BY pair_id) - 1 AS place
    FROM benchmark_pair
    WHERE benchmark = $benchmark AND is_natural IS NOT FALSE
)
SELECT
    groups, model_key, place, model, any_value(lean(log_ratio_nats, $epsilon_nats)) AS lean,
    aufc(log_ratio_nats) AS area
FROM scored_pair
JOIN cell USING (groups, pair_id)
WHERE benchmark = $benchmark
    AND model_key NOT IN (SELECT model_key FROM model_version WHERE NOT is_latest)
GROUP BY ALL
ORDER BY groups, model_key, place;
