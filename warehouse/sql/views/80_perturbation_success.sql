-- grain: probe_set x model_key x sampling_key x perturber x side x reason
-- How often continuations could be perturbed, and why others failed: a row with the reason `valid`,
-- then one per reason. Shares are of all continuations of the side, and sum to 1. If all
-- perturbations of a set fail, its row `valid` has 0.
CREATE OR REPLACE VIEW perturbation_success AS
WITH side AS (
    SELECT
        probe_set, model_key, sampling_key, perturber, side,
        count(*) AS n_side, count(*) FILTER (is_valid) AS n_valid
    FROM perturbed_continuation
    GROUP BY ALL
),
failed AS (
    SELECT probe_set, model_key, sampling_key, perturber, side, reason, count(*) AS n
    FROM perturbed_continuation
    WHERE NOT is_valid
    GROUP BY ALL
)
SELECT
    probe_set, model_key, sampling_key, perturber, side, 'valid' AS reason,
    n_valid AS n, n_side, n_valid / n_side AS share
FROM side
UNION ALL
SELECT
    probe_set, model_key, sampling_key, perturber, side, f.reason, f.n, s.n_side, f.n / s.n_side
FROM failed AS f
JOIN side AS s USING (probe_set, model_key, sampling_key, perturber, side);
