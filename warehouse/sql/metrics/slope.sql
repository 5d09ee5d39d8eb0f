-- grain: metric x subset x model_key x benchmark x groups x corpus x contrast x options
-- Least-squares slope of each group of `fit_point`: how many nats y changes per nat of x. Its
-- interval is over points (words) like these, which may scatter unequally. If the errors of x are
-- known, there is also its reliability, without an interval, and the slope corrected for it
-- (`fit`).
WITH found AS MATERIALIZED (FROM fit)
SELECT
    'slope' AS metric, model_key, model, benchmark, groups, corpus, contrast, subset,
    NULL::DOUBLE AS eta_nats,
    NULL::DOUBLE AS epsilon_nats,
    slope AS value,
    'nats per nat' AS unit,
    slope_se AS value_se, slope_low AS value_low, slope_high AS value_high,
    'HC3 t 95%' AS interval,
    n, slope_df AS df, n AS n_clusters, 'word' AS clusters, if(is_enough(n), abs(slope) / slope_se, NULL) AS statistic,
    options
FROM found
UNION ALL
SELECT
    'reliability', model_key, model, benchmark, groups, corpus, contrast, subset, NULL, NULL,
    reliability, 'share', NULL, NULL, NULL, 'none', n, NULL, NULL, NULL, NULL, options
FROM found
WHERE reliability IS NOT NULL
UNION ALL
SELECT
    'corrected slope', model_key, model, benchmark, groups, corpus, contrast, subset, NULL, NULL,
    corrected, 'nats per nat', corrected_se, corrected_low, corrected_high, 'jackknife t 95%', n,
    slope_df, n, 'word', if(is_enough(n), abs(corrected) / corrected_se, NULL), options
FROM found
WHERE corrected IS NOT NULL;
