-- grain: subset x model_key x benchmark x groups x corpus x contrast x options
-- Pearson correlation of each group of `fit_point`, with an interval over points (words) on Fisher's
-- z scale, see view `fit`.
SELECT
    'correlation' AS metric, model_key, model, benchmark, groups, corpus, contrast, subset,
    NULL::DOUBLE AS eta_nats,
    NULL::DOUBLE AS epsilon_nats,
    correlation AS value,
    'correlation' AS unit,
    CASE WHEN is_enough(n) THEN (1 - correlation ** 2) * z_se END AS value_se,
    correlation_low AS value_low,
    correlation_high AS value_high,
    'Fisher z, HC3 t 95%' AS interval,
    n, slope_df AS df, n AS n_clusters, 'word' AS clusters,
    CASE WHEN is_enough(n) AND abs(correlation) < 1 THEN abs(atanh(correlation)) / z_se END AS statistic,
    options
FROM fit;
