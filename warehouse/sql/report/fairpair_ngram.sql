-- grain: as ngram_log_odds, of $side, the $most at either end; n_ngrams counts all of them
SELECT *, count(*) OVER (PARTITION BY probe_set, model_key, sampling_key, perturber) AS n_ngrams
FROM ngram_log_odds
WHERE side = $side
QUALIFY row_number() OVER (
    PARTITION BY probe_set, model_key, sampling_key, perturber, z > 0 ORDER BY abs(z) DESC, ngram
) <= $most
ORDER BY probe_set, model_key, sampling_key, perturber, z DESC, ngram;
