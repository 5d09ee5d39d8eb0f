-- grain: pair_id, those of $benchmark that the scoring identity $model_key scored
-- The difference of log-probability a token of the two sides, see `pair_naturalness`.
SELECT pair_id, difference_nats
FROM pair_naturalness
WHERE benchmark = $benchmark AND model_key = $model_key;
