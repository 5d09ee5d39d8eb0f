-- grain: benchmark x pair_id, the first twenty
-- Which pairs do all models lean on?
-- Pairs of which every model prefers the same sentence by more than ln 1.65, those scored by most
-- models and leant on most first. What all models share, their texts or the sentence itself explain.
SELECT
    benchmark, n_models,
    if(n_female > 0, 'female', 'male') AS preferred,
    round(mean_log_ratio_nats, 2) AS mean_log_ratio_nats,
    template
FROM pair_agreement
WHERE n_models > 1 AND greatest(n_female, n_male) = n_models
ORDER BY n_models DESC, abs(mean_log_ratio_nats) DESC, benchmark, pair_id
LIMIT 20;
