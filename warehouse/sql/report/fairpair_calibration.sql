-- grain: fairpair_calibration over its splits
-- F and the ends of its interval are means over splits; n_sets_holding counts the splits whose
-- interval over prompts contains 1, n_sets_with those that have one.
SELECT
    probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side,
    count(*) AS n_splits, max(n_prompts) AS n_prompts, any_value(alpha) AS alpha,
    avg(fairpair_f) AS value, avg(fairpair_f_low) AS value_low, avg(fairpair_f_high) AS value_high,
    count(fairpair_f_low) AS n_sets_with, count(*) FILTER (fairpair_f_low <= 1 AND fairpair_f_high >= 1) AS n_sets_holding,
    sum(n_prompts)::BIGINT AS n_tests, sum(n_below)::BIGINT AS n_below,
    sum(n_found)::BIGINT AS n_found,
    sum(n_intervals)::BIGINT AS n_intervals, sum(n_holding)::BIGINT AS n_holding
FROM fairpair_calibration
GROUP BY ALL
ORDER BY ALL;
