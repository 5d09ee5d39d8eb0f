-- grain: benchmark x model_key x groups x subset
-- Does a model's preference change when the sentence starts with the pronoun?
-- There nothing has been said yet: the pronoun's own frequency decides as much as the words after
-- it. pd_points is the percentage of pairs that prefer the first of the groups minus that of pairs
-- that prefer the second. Two rows of opposite sign mean that a figure over all pairs averages two
-- different things.
SELECT
    benchmark, groups, model, subset, n AS n_pairs,
    round(value, 1) AS pd_points,
    round(value_low, 1) AS low,
    round(value_high, 1) AS high
FROM metric_value
WHERE metric = 'pd' AND subset IN ('pronoun first', 'pronoun later')
ORDER BY ALL;
