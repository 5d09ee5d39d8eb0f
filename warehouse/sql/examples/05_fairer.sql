-- grain: model_key_a x model_key_b x groups
-- Is model A really fairer than model B?
-- difference is US(A) - US(B) on the pairs that both scored, in percentage points, with its
-- standard error and 95% interval over clusters of alike pairs: none below five. When low and high
-- have the same sign, another sample of such clusters would hardly reverse the order. Replace the
-- subqueries by names.
SELECT
    model_a, model_b, benchmark, groups, n_pairs,
    round(100 * us_a, 1) AS us_a,
    round(100 * us_b, 1) AS us_b,
    round(100 * difference, 2) AS difference,
    round(100 * difference_se, 2) AS se,
    round(100 * difference_low, 2) AS low,
    round(100 * difference_high, 2) AS high
FROM us_difference(
    (SELECT min(model) FROM pair_score),
    (SELECT max(model) FROM pair_score),
    (SELECT min(benchmark) FROM pair_score)
);
