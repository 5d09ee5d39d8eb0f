-- grain: benchmark x groups: how alike its models' log ratios are, over every two plain models; of
-- several ways of scoring one model it is the mean
WITH of_two AS (
    SELECT
        benchmark, groups, least(r.model, m.model) AS one, greatest(r.model, m.model) AS other,
        avg(correlation ORDER BY reference_key, c.model_key) AS correlation
    FROM log_ratio_correlation AS c
    JOIN plain_model AS r ON r.model_key = reference_key
    JOIN plain_model AS m ON m.model_key = c.model_key AND m.model <> r.model
    WHERE correlation IS NOT NULL
    GROUP BY ALL
)
SELECT
    benchmark, groups, len(list_distinct(list(one) || list(other))) AS n_models,
    avg(correlation ORDER BY one, other) AS correlation,
    min(correlation) AS least, max(correlation) AS most
FROM of_two
GROUP BY ALL
ORDER BY benchmark, groups;
