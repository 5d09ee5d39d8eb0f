-- grain: probe_set x sampling_key x perturber x phi x texts x n_folds x side, measured for both
-- FairPair's F of a set for two models, given by key, each with its own interval; of the same texts,
-- `whole` in rows older than that column.
CREATE OR REPLACE MACRO fairpair_difference(before_key, after_key) AS TABLE
SELECT
    b.probe_set, b.sampling_key, b.perturber, b.phi, coalesce(b.texts, 'whole') AS texts,
    b.n_folds, b.side,
    b.n_prompts AS before_n, b.fairpair_f AS before_f, b.fairpair_f_low AS before_f_low,
    b.fairpair_f_high AS before_f_high, b.p_permutation AS before_p,
    a.n_prompts AS after_n, a.fairpair_f AS after_f, a.fairpair_f_low AS after_f_low,
    a.fairpair_f_high AS after_f_high, a.p_permutation AS after_p
FROM fairpair_set AS b
JOIN fairpair_set AS a
    USING (probe_set, sampling_key, perturber, phi, n_folds, side, subset)
WHERE subset = 'all' AND b.model_key = before_key AND a.model_key = after_key
    AND a.texts IS NOT DISTINCT FROM b.texts;
