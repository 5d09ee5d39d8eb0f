-- grain: as fairpair_convergence, those with a mean
SELECT * FROM fairpair_convergence WHERE mean IS NOT NULL
ORDER BY probe_set, model_key, sampling_key, perturber, phi, texts, side, quantity, n_folds, n_samples;
