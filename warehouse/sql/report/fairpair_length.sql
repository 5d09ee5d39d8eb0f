-- grain: as fairpair_length, those with an F
SELECT * REPLACE (coalesce(texts, 'whole') AS texts) FROM fairpair_length WHERE fairpair_f IS NOT NULL
ORDER BY probe_set, model_key, sampling_key, perturber, phi, texts, side, n_words = 0, n_words;
