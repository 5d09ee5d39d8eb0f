-- grain: as fairpair_set
-- With the model's name, the two persons where all prompts are about the same two, and how many
-- samples each prompt has. told_apart: settings in which the samplings and perturbers of one set
-- and model differ; empty where there is one. is_main: the row of side `original`, if that was measured.
WITH named AS (
    SELECT model_key, min(model) AS model FROM continuation GROUP BY model_key
),
person AS (
    SELECT
        probe_set,
        CASE WHEN count(DISTINCT (entity, perturbed_entity)) = 1 THEN min(entity) END AS entity,
        CASE WHEN count(DISTINCT (entity, perturbed_entity)) = 1 THEN min(perturbed_entity) END
            AS perturbed_entity
    FROM probe_prompt
    GROUP BY probe_set
),
samples AS (
    SELECT
        probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side,
        min(n_pg) AS least_pg, max(n_pg) AS most_pg, min(n_gp) AS least_gp, max(n_gp) AS most_gp,
        sum(n_pg)::BIGINT AS n_pg, sum(n_gp)::BIGINT AS n_gp
    FROM fairpair_prompt
    GROUP BY ALL
),
setting AS (
    SELECT DISTINCT
        probe_set, model_key, sampling_key, perturber,
        list_filter([
            max_new_tokens || ' tokens', 'temperature ' || temperature, 'top-p ' || top_p,
            'top-k ' || top_k, 'seed ' || seed, 'instruction ' || instruction_key[:8],
            'perturbed by ' || perturber
        ], lambda x: x IS NOT NULL) AS settings
    FROM fairpair_set
    LEFT JOIN sampling USING (sampling_key)
),
shared AS (
    SELECT
        probe_set, model_key,
        list_reduce(list(settings), lambda a, b: list_intersect(a, b)) AS in_all
    FROM setting
    GROUP BY ALL
)
SELECT s.*, coalesce(n.model, s.model_key) AS model, w.entity, w.perturbed_entity,
    coalesce((s.options ->> 'level')::DOUBLE, 0.95) AS level,
    array_to_string(list_filter(settings, lambda x: NOT list_contains(in_all, x)), ', ') AS told_apart,
    s.side = min(s.side) OVER (
        PARTITION BY s.probe_set, s.model_key, s.sampling_key, s.perturber, phi, s.texts, n_folds, s.subset
    ) AS is_main,
    samples.* EXCLUDE (probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side),
    d.bias_b_low, d.bias_b_high, d.variability_pg_low, d.variability_pg_high, d.variability_gp_low, d.variability_gp_high
FROM fairpair_set AS s
LEFT JOIN named AS n USING (model_key)
LEFT JOIN person AS w USING (probe_set)
LEFT JOIN setting USING (probe_set, model_key, sampling_key, perturber)
LEFT JOIN shared USING (probe_set, model_key)
LEFT JOIN samples USING (probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side)
LEFT JOIN fairpair_spread AS d
    USING (probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side, subset)
ORDER BY s.probe_set, model, s.model_key, s.sampling_key, s.perturber, s.phi,
    s.texts <> 'filtered', s.texts, s.n_folds, s.side,
    s.subset <> 'all', s.subset;
