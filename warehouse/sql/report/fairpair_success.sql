-- grain: as view perturbation_success
SELECT * FROM perturbation_success
ORDER BY probe_set, model_key, sampling_key, perturber, side, reason <> 'valid', n DESC, reason;
