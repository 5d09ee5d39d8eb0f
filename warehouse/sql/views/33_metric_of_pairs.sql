-- grain: row of `metric_value` that the pairs give
-- Make rows of `metric_value` from one row per pair. A value is sum(numerator) / sum(denominator)
-- over the pairs, with the interval that `clustered` gives over their clusters. `pairs` names a CTE
-- or view with the key columns of `metric_value`, model, eta_nats, epsilon_nats, unit and these.
-- pair_id: the pair. numerator, denominator: both are 0 for a pair outside the subset. interval:
-- `Wilson 95%` for a share (numerators are 0 or 1), `Bonett-Price 95%` for a difference of shares
-- (-1, 0 or 1), else `Student t 95%`. lowest, highest: limits of a mean; NULL without a limit.
-- null_value: value that `statistic` tests for, NULL for none. In the unit `percentage points` the
-- value is 100 times the ratio. statistic is the distance from null_value in standard errors of the
-- interval; `plumbline measure` turns it into p.
CREATE OR REPLACE MACRO metric_of_pairs(pairs) AS TABLE
WITH figure AS (
    SELECT
        {
            'metric': metric, 'model_key': model_key, 'model': model, 'benchmark': benchmark,
            'groups': groups, 'corpus': corpus, 'contrast': contrast, 'subset': subset,
            'eta_nats': eta_nats, 'epsilon_nats': epsilon_nats, 'unit': unit, 'interval': "interval",
            'options': options, 'lowest': lowest, 'highest': highest, 'null_value': null_value
        } AS subject,
        cluster_1, cluster_2, stratum, numerator, denominator
    FROM query_table(pairs)
    JOIN pair_cell USING (benchmark, pair_id)
),
kind AS (
    SELECT benchmark, string_agg(DISTINCT split_part(cluster, ': ', 1), ', ' ORDER BY split_part(cluster, ': ', 1)) AS clusters
    FROM pair_cluster
    WHERE cluster <> 'pair: ' || pair_id
    GROUP BY benchmark
),
estimate AS (
    SELECT
        subject.*, * EXCLUDE (subject),
        if(subject.unit = 'percentage points', 100, 1) AS scale,
        if(subject.lowest IS NULL, t, skewed_t(t, n_clusters)) AS t_mean
    FROM clustered('figure')
)
SELECT
    metric, model_key, model, benchmark, groups, corpus, contrast, subset, eta_nats, epsilon_nats,
    scale * value AS value,
    unit,
    scale * se AS value_se,
    scale * CASE "interval"
        WHEN 'Wilson 95%' THEN wilson_low(value, n_star, t)
        WHEN 'Bonett-Price 95%' THEN bonett_price(share_above, share_below, n_star, -t)
        ELSE mean_low(value, se, t_mean, lowest, highest)
    END AS value_low,
    scale * CASE "interval"
        WHEN 'Wilson 95%' THEN wilson_high(value, n_star, t)
        WHEN 'Bonett-Price 95%' THEN bonett_price(share_above, share_below, n_star, t)
        ELSE mean_high(value, se, t_mean, lowest, highest)
    END AS value_high,
    if(t IS NULL AND n > 0, 'none: fewer than five clusters', "interval") AS "interval",
    n, df, n_clusters, clusters, cluster_values,
    CASE
        WHEN t IS NULL OR n_star = 0 THEN NULL
        WHEN "interval" = 'Wilson 95%'
            THEN abs(value - null_value) / sqrt(null_value * (1 - null_value) / n_star)
        WHEN "interval" = 'Bonett-Price 95%'
            THEN abs(bonett_price_centre(share_above, share_below, n_star) - null_value)
                / bonett_price_se(share_above, share_below, n_star)
        ELSE abs(value - null_value) / nullif(se, 0)
    END AS statistic,
    options
FROM estimate
LEFT JOIN kind USING (benchmark);
