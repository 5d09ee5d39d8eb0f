-- grain: model_key x benchmark x groups x corpus x contrast x subset
-- The number of scored pairs in a subset. It is exact, so it has no interval.
SELECT
    'n' AS metric, model_key, model, benchmark, groups, corpus, contrast, subset, eta_nats,
    NULL::DOUBLE AS epsilon_nats,
    (count(*) FILTER (is_member))::DOUBLE AS value,
    'pairs' AS unit,
    NULL::DOUBLE AS value_se,
    NULL::DOUBLE AS value_low,
    NULL::DOUBLE AS value_high,
    'none' AS interval,
    count(*) FILTER (is_member) AS n,
    '{}' AS options
FROM scored_subset($etas)
GROUP BY ALL;
