-- grain: model_key x benchmark x groups x corpus x contrast x subset x log base x pair_id
-- Area under the fairness curve: US against epsilon, by the trapezoid rule over 101 points in [0,
-- 6], not divided by the length, so 6 is the largest value. The curve is the mean of one step per
-- pair, so the area is the mean of the pairs' areas. $log_bases are the bases of the log ratios (e,
-- or 10 as in the published Table 19).
WITH based AS (
    SELECT unnest($log_bases)::DOUBLE AS log_base
)
SELECT
    'aufc' AS metric, model_key, model, benchmark, groups, corpus, contrast, subset, eta_nats,
    NULL::DOUBLE AS epsilon_nats, pair_id,
    if(is_member, 0.03::DOUBLE * aufc_steps(log_ratio_nats / ln(log_base)), 0) AS numerator,
    is_member::INTEGER AS denominator,
    if(abs(log_base - exp(1)) < 1e-9, 'nats', 'log ' || log_base::VARCHAR) AS unit,
    'Wilson on 0 to 6, 95%' AS "interval",
    '{"epsilon_max": 6, "log_base": "'
        || if(abs(log_base - exp(1)) < 1e-9, 'e', log_base::VARCHAR)
        || '", "points": 101}' AS options,
    0 AS lowest, 6 AS highest, NULL AS null_value
FROM scored_subset($etas), based;
