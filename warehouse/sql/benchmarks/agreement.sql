-- grain: one row for $benchmark and the scoring identity $model_key; none without a judge
-- How many pairs the judge and the model at the limit $most_nats agree on, see `opinion_agreement`.
SELECT n_both, n_judge_only, n_model_only, n_neither
FROM opinion_agreement($most_nats)
WHERE benchmark = $benchmark AND model_key = $model_key;
