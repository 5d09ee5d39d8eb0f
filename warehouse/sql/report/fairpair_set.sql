-- grain: as fairpair_set
-- With the model's name, the two persons where all prompts are about the same two, the level of the
-- interval of F, and the intervals of B and V. is_main: the row of side `original`, if that was measured.
WITH named AS (
    SELECT model_key, min(model) AS model FROM continuation GROUP BY model_key
),
person AS (
    SELECT
        probe_set, any_value(entity) AS entity, any_value(perturbed_entity) AS perturbed_entity
    FROM probe_prompt
    GROUP BY probe_set
    HAVING count(DISTINCT (entity, perturbed_entity)) = 1
)
SELECT
    s.*, coalesce(n.model, s.model_key) AS model, w.entity, w.perturbed_entity,
    coalesce((s.options ->> 'level')::DOUBLE, 0.95) AS level,
    s.side = min(s.side) OVER (
        PARTITION BY s.probe_set, s.model_key, s.sampling_key, s.perturber, phi, s.texts, n_folds, s.subset
    ) AS is_main,
    d.bias_b_low, d.bias_b_high, d.variability_pg_low, d.variability_pg_high,
    d.variability_gp_low, d.variability_gp_high
FROM fairpair_set AS s
LEFT JOIN named AS n USING (model_key)
LEFT JOIN person AS w USING (probe_set)
LEFT JOIN fairpair_spread AS d
    USING (probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side, subset)
ORDER BY s.probe_set, model, s.model_key, s.sampling_key, s.perturber, s.phi,
    s.texts <> 'filtered', s.texts, s.n_folds, s.side,
    s.subset <> 'all', s.subset;
