-- grain: benchmark x groups: how alike its models' log ratios are, over every two models
SELECT
    benchmark, groups,
    len(list_distinct(list(reference_key) || list(model_key))) AS n_models,
    avg(correlation ORDER BY reference_key, model_key) AS correlation,
    min(correlation) AS least, max(correlation) AS most
FROM log_ratio_correlation
WHERE correlation IS NOT NULL
GROUP BY ALL
ORDER BY benchmark, groups;
