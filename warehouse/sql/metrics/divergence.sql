-- grain: model_key x benchmark x groups x subset, more than two groups
-- Divergence: how far the groups' shares of preferred sentences are from even, as a share of the
-- farthest that they can be (`group_share`). Of two groups it would be |PD| / 100.
SELECT
    'divergence' AS metric, model_key, model, benchmark, groups, '' AS corpus, '' AS contrast, subset,
    NULL::DOUBLE AS eta_nats,
    $epsilon_nats::DOUBLE AS epsilon_nats,
    divergence AS value,
    'share' AS unit,
    se AS value_se,
    CASE WHEN half IS NOT NULL THEN greatest(0, divergence - half) END AS value_low,
    CASE WHEN half IS NOT NULL THEN least(1, divergence + half) END AS value_high,
    'Scheffe 95%' AS "interval",
    n, df, n_clusters, cluster_values,
    '{}' AS options
FROM group_share($epsilon_nats, least_groups := 3)
WHERE n_groups > 2;
