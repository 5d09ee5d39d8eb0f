-- grain: reference_key x model_key x benchmark x groups
-- Is one model really fairer than another?
-- difference is US of the model minus US of the reference on the pairs that both scored, in
-- percentage points. Its 95% interval is over clusters of similar pairs; there is none below five
-- clusters. If low and high have the same sign, another sample would hardly reverse the order.
SELECT
    reference_key, model_key, benchmark, groups, n_pairs,
    round(100 * reference_mean, 1) AS us_reference,
    round(100 * model_mean, 1) AS us_model,
    round(100 * difference, 2) AS difference,
    round(100 * difference_low, 2) AS low,
    round(100 * difference_high, 2) AS high
FROM preference_pairwise(both_ways := false)
WHERE measure = 'us'
ORDER BY ALL;
