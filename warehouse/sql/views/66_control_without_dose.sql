-- grain: study x benchmark x groups x corpus x contrast x predictor
-- What is left of each predictor of a log ratio when the others are held fixed, in an intervention's
-- models without a dose: the mean over seeds of `control.coefficient`, with Student's 95% interval,
-- NULL below two seeds. `n_predicts` of the `n_seeds` models have the verdict `predicts`.
CREATE OR REPLACE VIEW control_without_dose AS
SELECT
    a.study, c.benchmark, c.groups, c.corpus, c.contrast, c.predictor,
    avg(c.coefficient ORDER BY a.seed) AS coefficient,
    avg(c.coefficient ORDER BY a.seed) - student_half(c.coefficient, least := 2) AS coefficient_low,
    avg(c.coefficient ORDER BY a.seed) + student_half(c.coefficient, least := 2) AS coefficient_high,
    count(*) FILTER (c.verdict = 'predicts') AS n_predicts,
    count(*) AS n_seeds
FROM intervention_arm AS a
JOIN trained_key AS k USING (model)
JOIN control AS c USING (model_key)
WHERE a.kind = 'gender' AND a.dose = 0 AND c.subset = 'words, measured delta'
GROUP BY ALL;
