-- grain: model_key x benchmark x groups x corpus x contrast x constrained subset
-- Gap: US of the constrained pairs minus US of all pairs. Its error comes from what each pair adds
-- to the gap while the constrained pairs' US is held fixed, so it allows for pairs that are in
-- both. n is the number of constrained pairs. It has no interval if their US has none.
WITH scored AS (
    SELECT *, within(log_ratio_nats, $epsilon_nats)::INTEGER AS even
    FROM scored_subset($etas)
    WHERE corpus <> ''
),
counted AS (
    SELECT
        model_key, benchmark, groups, corpus, contrast, subset,
        count(*) AS n_all, count(*) FILTER (is_member) AS n_in,
        sum(even) FILTER (is_member) / nullif(n_in, 0) AS us_in,
        us_in - sum(even) / n_all AS gap
    FROM scored
    GROUP BY ALL
),
pair AS (
    SELECT
        'gap' AS metric, model_key, model, benchmark, groups, corpus, contrast, subset, eta_nats,
        $epsilon_nats::DOUBLE AS epsilon_nats, pair_id,
        if(n_in > 0, (even - us_in) * (is_member::INTEGER * n_all / n_in - 1), 0) AS numerator,
        (n_in > 0)::INTEGER AS denominator,
        'share' AS unit, 'Student t 95%' AS "interval", '{}' AS options,
        NULL AS lowest, NULL AS highest, 0 AS null_value
    FROM scored
    JOIN counted USING (model_key, benchmark, groups, corpus, contrast, subset)
),
clustered_in AS (
    SELECT
        model_key, benchmark, groups, corpus, contrast, subset,
        list_filter([count(DISTINCT cluster_1), count(DISTINCT cluster_2)], lambda k: k > 1) AS kinds,
        list_min(kinds) >= 3 AND is_enough(list_max(kinds)) AS has_enough
    FROM scored
    JOIN pair_cell USING (benchmark, pair_id)
    WHERE is_member
    GROUP BY ALL
),
estimated AS (FROM metric_of_pairs('pair'))
SELECT
    g.* REPLACE (
        n_in AS n,
        -- exactly 0 for equal shares, unlike the sum over pairs
        gap AS value,
        CASE WHEN has_enough THEN value_low END AS value_low,
        CASE WHEN has_enough THEN value_high END AS value_high,
        CASE WHEN has_enough THEN statistic END AS statistic,
        if(n_in = 0 OR has_enough, "interval", 'none: fewer than five clusters') AS "interval"
    )
FROM estimated AS g
JOIN counted USING (model_key, benchmark, groups, corpus, contrast, subset)
LEFT JOIN clustered_in USING (model_key, benchmark, groups, corpus, contrast, subset);
