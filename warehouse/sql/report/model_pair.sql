-- grain: benchmark x groups: how many of its pairs of models differ in US and in PD by `model_rank`
-- With 95% no pair is among them by chance.
SELECT
    benchmark,
    groups,
    count(*) FILTER (metric = 'us') AS n_models,
    n_models * (n_models - 1) // 2 AS n_model_pairs,
    sum(rank_low - 1) FILTER (metric = 'us')::BIGINT AS n_us_corrected,
    sum(rank_low - 1) FILTER (metric = 'pd')::BIGINT AS n_pd_corrected
FROM model_rank
GROUP BY ALL
ORDER BY benchmark, groups;
