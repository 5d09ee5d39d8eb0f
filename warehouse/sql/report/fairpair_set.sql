-- grain: as fairpair_set
-- texts is `whole` in rows older than that column, which have no p of the paper's t-test. With the
-- model's name, the two persons where all prompts are about the same two, and how many
-- samples each prompt has.
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
        probe_set, model_key, sampling_key, perturber, phi, coalesce(texts, 'whole') AS texts,
        n_folds, side,
        min(n_pg) AS least_pg, max(n_pg) AS most_pg, min(n_gp) AS least_gp, max(n_gp) AS most_gp,
        sum(n_pg)::BIGINT AS n_pg, sum(n_gp)::BIGINT AS n_gp
    FROM fairpair_prompt
    GROUP BY ALL
),
figure AS (
    SELECT * REPLACE (
        coalesce(texts, 'whole') AS texts, CASE WHEN texts IS NOT NULL THEN p_t END AS p_t
    )
    FROM fairpair_set
)
SELECT s.*, coalesce(n.model, s.model_key) AS model, w.entity, w.perturbed_entity,
    samples.* EXCLUDE (probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side),
    d.bias_b_low, d.bias_b_high, d.variability_pg_low, d.variability_pg_high, d.variability_gp_low, d.variability_gp_high
FROM figure AS s
LEFT JOIN named AS n USING (model_key)
LEFT JOIN person AS w USING (probe_set)
LEFT JOIN samples USING (probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side)
LEFT JOIN fairpair_spread AS d
    USING (probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side, subset)
ORDER BY s.probe_set, model, s.model_key, s.sampling_key, s.perturber, s.phi, s.texts, s.n_folds, s.side,
    s.subset <> 'all', s.subset;
