-- grain: model_key x groups x contrast
-- What does the constraint on |MaxPMI| change?
-- gap is US of the pairs within eta 0.65 minus US of all pairs, in percentage points: positive when
-- the model is fairer where the text is balanced. low and high bound it with 95% confidence, over
-- clusters of alike pairs. Replace NULL by a number to compare two limits, and the subqueries by
-- names.
SELECT
    model, benchmark, groups, corpus, contrast, n_a, n_b,
    round(100 * us_a, 1) AS us_a,
    round(100 * us_b, 1) AS us_b,
    round(100 * gap, 2) AS gap,
    round(100 * gap_se, 2) AS se,
    round(100 * gap_low, 2) AS low,
    round(100 * gap_high, 2) AS high
FROM us_gap(
    (SELECT min(model) FROM pair_score),
    (SELECT min(benchmark) FROM pair_association),
    (SELECT min(corpus) FROM pair_association),
    0.65,
    NULL
);
