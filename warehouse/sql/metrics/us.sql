-- grain: model_key x benchmark x groups x corpus x contrast x subset x pair_id
-- Unstereotypical share: pairs whose two sentences are about as likely, |log ratio| <= epsilon.
SELECT
    'us' AS metric, model_key, model, benchmark, groups, corpus, contrast, subset, eta_nats,
    $epsilon_nats::DOUBLE AS epsilon_nats, pair_id,
    (is_member AND within(log_ratio_nats, $epsilon_nats))::INTEGER AS numerator,
    is_member::INTEGER AS denominator,
    'share' AS unit, 'Wilson 95%' AS "interval", '{}' AS options,
    NULL AS lowest, NULL AS highest, NULL AS null_value
FROM scored_subset($etas);
