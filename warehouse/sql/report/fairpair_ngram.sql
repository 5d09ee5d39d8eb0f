-- grain: probe_set x model_key x sampling_key x perturber x n-gram, those furthest to either side
-- Those of $side; n_ngrams counts all of them, not only the $most returned on either side of 0.
SELECT *, z > 0 AS of_perturbed, count(*) OVER (PARTITION BY probe_set, model_key, sampling_key, perturber) AS n_ngrams
FROM ngram_log_odds
WHERE side = $side
QUALIFY row_number() OVER (
    PARTITION BY probe_set, model_key, sampling_key, perturber, z > 0 ORDER BY abs(z) DESC, ngram
) <= $most
ORDER BY probe_set, model_key, sampling_key, perturber, z DESC, ngram;
