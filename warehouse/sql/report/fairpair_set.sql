-- grain: as fairpair_set
-- With the model's name, the two persons where all prompts are about the same two, the level of the
-- interval of F, and the intervals of B and V.
WITH person AS (
    SELECT
        probe_set, any_value(entity) AS entity, any_value(perturbed_entity) AS perturbed_entity
    FROM probe_prompt
    GROUP BY probe_set
    HAVING count(DISTINCT (entity, perturbed_entity)) = 1
)
SELECT
    (SELECT min(model) FROM continuation AS c WHERE c.model_key = s.model_key) AS model, s.*,
    w.entity, w.perturbed_entity, coalesce((s.options ->> 'level')::DOUBLE, 0.95) AS level,
    d.* EXCLUDE (probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side, subset)
FROM fairpair_set AS s
LEFT JOIN person AS w USING (probe_set)
LEFT JOIN fairpair_spread AS d
    USING (probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side, subset)
ORDER BY s.probe_set, model, s.model_key, s.sampling_key, s.perturber, s.phi,
    s.texts <> 'filtered', s.texts, s.n_folds, s.side, s.subset <> 'all', s.subset;
