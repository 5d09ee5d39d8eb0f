-- grain: model x scores x benchmark x groups x corpus x contrast x subset x measure
-- The size of each model in `plain_model`, and what was measured on it: US (a share), PD
-- (percentage points), |PD|, and the slope of its log ratios on the text's delta or MaxPMI (nats
-- per nat). `family` and `training_text` are as in table `model`; scores is `released` or `own`. If
-- a model was scored in several ways, such as dtypes, the figure is their mean.
CREATE OR REPLACE VIEW size_point AS
WITH sized AS (
    SELECT
        model_key, model, n_parameters,
        CASE WHEN backend = 'released' THEN 'released' ELSE 'own' END AS scores,
        family, training_text
    FROM plain_model
    WHERE n_parameters IS NOT NULL
),
figure AS (
    SELECT *, metric AS measured, value AS measured_value FROM metric_value
    UNION ALL
    SELECT *, '|pd|', abs(value) FROM metric_value WHERE metric = 'pd'
)
SELECT
    sized.model, sized.family, sized.training_text, sized.scores, sized.n_parameters,
    benchmark, groups, corpus, contrast, subset, measured AS measure,
    avg(measured_value) AS figure
FROM figure
JOIN sized USING (model_key)
WHERE measured_value IS NOT NULL
    AND (
        (measured IN ('us', 'pd', '|pd|') AND subset = 'all' AND eta_nats IS NULL)
        OR (measured = 'slope' AND subset IN ('words, measured delta', 'words, max_pmi'))
    )
GROUP BY ALL;
