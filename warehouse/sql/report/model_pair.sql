-- grain: benchmark x groups: how many pairs of its models differ, with an interval that excludes 0
-- The numbers after correction are those of `model_rank`: with 95% no pair is in them by chance.
WITH corrected AS (
    SELECT
        benchmark, groups,
        sum(rank_low - 1) FILTER (metric = 'us') AS n_us_corrected,
        sum(rank_low - 1) FILTER (metric = 'pd') AS n_pd_corrected
    FROM model_rank
    GROUP BY ALL
)
SELECT
    benchmark,
    groups,
    len(list_distinct(list(reference_key) || list(model_key))) AS n_models,
    count(*) FILTER (measure = 'us') AS n_model_pairs,
    count(*) FILTER (measure = 'us' AND direction IN ('fell', 'rose')) AS n_us_differ,
    any_value(n_us_corrected)::BIGINT AS n_us_corrected,
    count(*) FILTER (measure = 'pd' AND direction IN ('fell', 'rose')) AS n_pd_differ,
    any_value(n_pd_corrected)::BIGINT AS n_pd_corrected
FROM preference_pairwise(epsilon := $epsilon, both_ways := false)
LEFT JOIN corrected USING (benchmark, groups)
GROUP BY benchmark, groups
ORDER BY benchmark, groups;
