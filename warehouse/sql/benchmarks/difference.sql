-- grain: pair_id, those of $benchmark that the scoring identity $model_key scored
-- The difference of the two sides' log-probability per token, see `pair_naturalness`.
SELECT pair_id, difference_nats
FROM pair_naturalness
WHERE benchmark = $benchmark AND model_key = $model_key;
