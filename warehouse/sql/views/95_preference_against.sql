-- grain: reference_key x model_key x groups of a benchmark, on the pairs that both scored
-- All models of a benchmark compared with one reference, given by its key: US (shares) and PD
-- (points) and their differences as in `preference_pairwise`, with the models' names and what their
-- scores are (measure), e.g. `FROM preference_against('KEY', 'use-5')`. With the key '', each two
-- models are compared, and the first by name is the reference.
CREATE OR REPLACE MACRO preference_against(
    against_key, benchmark_name, epsilon := ln(1.65)
) AS TABLE
WITH named AS (
    SELECT
        model_key,
        coalesce(any_value(label), min(s.model)) AS model,
        coalesce(any_value(m.measure), 'log-likelihood') AS measure
    FROM pair_score AS s
    LEFT JOIN model_label USING (model_key)
    LEFT JOIN model AS m USING (model_key)
    GROUP BY model_key
),
wide AS (
    SELECT
        benchmark, groups, reference_key, model_key, any_value(n_pairs) AS n_pairs,
        any_value(reference_mean) FILTER (measure = 'us') AS us_reference,
        any_value(model_mean) FILTER (measure = 'us') AS us_model,
        any_value(difference) FILTER (measure = 'us') AS us_difference,
        any_value(difference_low) FILTER (measure = 'us') AS us_difference_low,
        any_value(difference_high) FILTER (measure = 'us') AS us_difference_high,
        any_value(direction) FILTER (measure = 'us') AS us_direction,
        any_value(reference_mean) FILTER (measure = 'pd') AS pd_reference,
        any_value(model_mean) FILTER (measure = 'pd') AS pd_model,
        any_value(difference) FILTER (measure = 'pd') AS pd_difference,
        any_value(difference_low) FILTER (measure = 'pd') AS pd_difference_low,
        any_value(difference_high) FILTER (measure = 'pd') AS pd_difference_high,
        any_value(direction) FILTER (measure = 'pd') AS pd_direction
    FROM preference_pairwise(
        epsilon := epsilon, reference := nullif(against_key, ''), of_benchmark := benchmark_name
    )
    GROUP BY ALL
)
SELECT m.model, r.model AS reference, m.measure, r.measure AS reference_measure, wide.*
FROM wide
JOIN named AS r ON r.model_key = reference_key
JOIN named AS m ON m.model_key = wide.model_key
WHERE against_key <> '' OR (r.model, reference_key) < (m.model, m.model_key);
