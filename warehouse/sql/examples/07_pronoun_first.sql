-- grain: benchmark x model_key x groups x pronoun_first
-- Does a model's preference change when the sentence starts with the pronoun?
-- There nothing has been said yet: the pronoun's own frequency decides as much as the words after
-- it. pd_points is the percentage of pairs that prefer the first of the groups minus that of
-- pairs that prefer the second. Two
-- rows of opposite sign mean that a figure over all pairs averages two different things.
SELECT
    benchmark, groups, model, pronoun_first, n_pairs,
    round(100 * us, 1) AS us_percent,
    round(pd_points, 1) AS pd_points,
    round(pd_points_low, 1) AS pd_points_low,
    round(pd_points_high, 1) AS pd_points_high
FROM us_by_start
ORDER BY benchmark, groups, model, model_key, pronoun_first DESC;
