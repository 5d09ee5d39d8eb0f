-- grain: benchmark x groups x measure, `us` and `pd`, pairs that both scored
-- How US and PD change from one model to another, both given by key: the rows of
-- preference_pairwise for these two, as before and after. unit is `share` of US, and `points`
-- (percentage points) of PD.
CREATE OR REPLACE MACRO preference_difference(
    before_key, after_key, epsilon := ln(1.65)
) AS TABLE
SELECT
    benchmark, groups, measure, CASE measure WHEN 'us' THEN 'share' ELSE 'points' END AS unit,
    n_pairs, reference_mean AS before_mean, model_mean AS after_mean,
    difference, difference_low, difference_high, direction
FROM preference_pairwise(epsilon := epsilon, reference := before_key, of_model := after_key);
