-- grain: as view compared_length
SELECT * FROM compared_length
ORDER BY probe_set, model_key, sampling_key, perturber, side;
