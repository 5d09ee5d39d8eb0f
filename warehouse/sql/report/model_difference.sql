-- grain: reference_key x model_key, each two models of $benchmark and $groups
-- They are compared on the pairs that both scored; the largest difference in US comes first.
FROM preference_against('', $benchmark, epsilon := $epsilon)
WHERE groups = $groups
ORDER BY us_difference DESC, model, model_key, reference, reference_key;
