-- grain: as fairpair_prompt
-- prompt is the prompt's occupation or, without one, the last two sentences of its text, one a line.
-- If another prompt of the set has the same, it is the whole text.
SELECT f.*, occupation, coalesce(if(p.n = 1, label, p.prompt), f.prompt_id) AS prompt
FROM fairpair_prompt AS f
LEFT JOIN (
    SELECT
        *, regexp_extract(prompt, '[^. ][^.]*\.?[^.]*$') AS ending,
        coalesce(occupation, replace(ending, '. ', '. · ')) AS label,
        count(*) OVER (PARTITION BY probe_set, label) AS n
    FROM probe_prompt
) AS p USING (probe_set, prompt_id)
ORDER BY f.probe_set, f.model_key, f.sampling_key, f.perturber, f.phi, f.texts, f.n_folds, f.side,
    f.q_permutation, f.fairpair_f DESC NULLS LAST, f.prompt_id;
