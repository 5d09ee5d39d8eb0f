-- grain: model_key x benchmark x groups x corpus x contrast x subset x pair_id
-- Preference disparity: share of pairs that prefer sentence a by more than epsilon, minus the share
-- that prefer sentence b, in percentage points.
SELECT
    'pd' AS metric, model_key, model, benchmark, groups, corpus, contrast, subset, eta_nats,
    $epsilon_nats::DOUBLE AS epsilon_nats, pair_id,
    if(is_member, lean(log_ratio_nats, $epsilon_nats), 0) AS numerator,
    is_member::INTEGER AS denominator,
    'percentage points' AS unit, 'Bonett-Price 95%' AS "interval", '{}' AS options,
    NULL AS lowest, NULL AS highest, 0 AS null_value
FROM scored_subset($etas);
