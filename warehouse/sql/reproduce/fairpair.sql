-- grain: probe_set x model_key x sampling_key x perturber x n_folds x phi x metric
-- What Table 3 of FairPair prints, of each run on Common Sents in the warehouse: B and V times 100
-- with Student's 95% interval over prompts, F with its bootstrap interval, all of the side
-- `original`; beside them how the run was made, by the warehouse's own records.
WITH spread AS (
    SELECT
        probe_set, model_key, sampling_key, perturber, phi, n_folds, side,
        avg(bias_b) AS b, student_half(bias_b) AS half_b,
        avg(variability_pg) AS pg, student_half(variability_pg) AS half_pg,
        avg(variability_gp) AS gp, student_half(variability_gp) AS half_gp
    FROM fairpair_prompt
    WHERE bias_b IS NOT NULL AND variability_pg IS NOT NULL AND variability_gp IS NOT NULL
    GROUP BY ALL
),
drawn AS (
    SELECT
        probe_set, model_key, sampling_key, any_value(model) AS model,
        count(DISTINCT sample) AS n_samples
    FROM continuation
    GROUP BY ALL
),
perturbed AS (
    SELECT
        probe_set, model_key, sampling_key, perturber,
        round(100 * avg((NOT is_valid)::INTEGER), 1) AS percent_invalid
    FROM perturbed_continuation
    GROUP BY ALL
),
prompt AS (
    SELECT probe_set, min(prompt) AS example FROM probe_prompt GROUP BY ALL
)
SELECT
    'common-sents' AS inputs,
    CASE f.phi WHEN 'vader' THEN 'sentiment' ELSE f.phi END AS method,
    d.model, f.model_key,
    unnest(['B', 'V_pg', 'V_gp', 'F']) AS metric,
    unnest([100 * p.b, 100 * p.pg, 100 * p.gp, f.fairpair_f]) AS measured,
    unnest(
        [100 * (p.b - p.half_b), 100 * (p.pg - p.half_pg), 100 * (p.gp - p.half_gp), f.fairpair_f_low]
    ) AS low,
    unnest(
        [100 * (p.b + p.half_b), 100 * (p.pg + p.half_pg), 100 * (p.gp + p.half_gp), f.fairpair_f_high]
    ) AS high,
    f.probe_set, t.example, f.n_prompts, f.n_left_out, d.n_samples, r.percent_invalid,
    s.method AS decoding, s.temperature, s.top_p, s.top_k, s.max_new_tokens, s.instruction,
    f.perturber, f.n_folds, (f.options ->> '$.level')::DOUBLE AS level, m.dtype, m.quantisation, m.adapter, m.backend, m.revision
FROM fairpair_set AS f
LEFT JOIN spread AS p USING (probe_set, model_key, sampling_key, perturber, phi, n_folds, side)
JOIN drawn AS d USING (probe_set, model_key, sampling_key)
JOIN perturbed AS r USING (probe_set, model_key, sampling_key, perturber)
JOIN prompt AS t USING (probe_set)
LEFT JOIN sampling AS s USING (sampling_key)
LEFT JOIN model AS m USING (model_key)
WHERE f.subset = 'all' AND f.side = 'original' AND starts_with(f.probe_set, 'common-sents')
ORDER BY d.model, f.model_key, f.sampling_key, f.probe_set, f.perturber, f.n_folds, method, metric;
