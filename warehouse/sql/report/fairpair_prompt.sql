-- grain: as fairpair_prompt
-- prompt is the prompt's occupation, or its text if another prompt of the set has that occupation;
-- its identifier if it has no occupation.
SELECT f.*, if(occupation IS NULL, f.prompt_id, if(p.n = 1, occupation, p.prompt)) AS prompt
FROM fairpair_prompt AS f
LEFT JOIN (
    SELECT *, count(*) OVER (PARTITION BY probe_set, occupation) AS n FROM probe_prompt
) AS p USING (probe_set, prompt_id)
ORDER BY f.probe_set, f.model_key, f.sampling_key, f.perturber, f.phi, f.texts, f.n_folds, f.side,
    f.q_permutation, f.fairpair_f DESC NULLS LAST, f.prompt_id;
