-- grain: reference_key x model_key, every two models of $benchmark and $groups on the pairs that both
-- scored, the largest difference in US first
FROM preference_against('', $benchmark, epsilon := $epsilon)
WHERE groups = $groups
ORDER BY us_difference DESC, model, model_key, reference, reference_key;
