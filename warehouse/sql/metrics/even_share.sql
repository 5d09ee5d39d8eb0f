-- grain: model_key x benchmark x groups x subset, more than two groups
-- Even share: share of items of which no sentence is preferred to another, so that the most and the
-- least likely of all groups' sentences differ by at most epsilon. Of two groups it would be US.
SELECT
    'even share' AS metric, model_key, model, benchmark, groups, '' AS corpus, '' AS contrast, subset,
    NULL::DOUBLE AS eta_nats,
    $epsilon_nats::DOUBLE AS epsilon_nats,
    even_share AS value,
    'share' AS unit,
    sqrt(even_share * (1 - even_share) / even_n) AS value_se,
    even_share_low AS value_low,
    even_share_high AS value_high,
    'Wilson 95%' AS "interval",
    n, df, n_clusters, cluster_values,
    '{}' AS options
FROM group_share($epsilon_nats, least_groups := 3)
WHERE n_groups > 2;
