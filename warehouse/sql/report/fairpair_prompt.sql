-- grain: as fairpair_prompt
-- A prompt is shown by its occupation, or in full if another of its set has the same occupation;
-- without an occupation, by its identifier.
WITH named AS (
    SELECT
        probe_set, prompt_id,
        CASE
            WHEN occupation IS NULL THEN prompt_id
            WHEN count(*) OVER (PARTITION BY probe_set, occupation) = 1 THEN occupation
            ELSE prompt
        END AS prompt
    FROM probe_prompt
)
SELECT f.*, coalesce(n.prompt, f.prompt_id) AS prompt
FROM fairpair_prompt AS f
LEFT JOIN named AS n USING (probe_set, prompt_id)
ORDER BY f.probe_set, f.model_key, f.sampling_key, f.perturber, f.phi, f.texts, f.n_folds, f.side,
    f.q_permutation, f.fairpair_f DESC NULLS LAST, f.prompt_id;
