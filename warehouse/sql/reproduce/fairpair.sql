-- grain: probe_set x model_key x sampling_key x perturber x texts x n_folds x method x metric
-- The figures of Tables 1 and 3 of FairPair, for each run on Common Sents in the warehouse: B and V
-- times 100 with the 95% intervals of `fairpair_spread`, F with its bootstrap interval, and the
-- percentage of valid perturbations with an interval over clusters of prompts (`prompt_cell`). All
-- are of the side `original`. Further columns say how the run was made.
WITH drawn AS (
    SELECT
        probe_set, model_key, sampling_key, any_value(model) AS model,
        count(DISTINCT sample) AS n_samples
    FROM continuation
    GROUP BY ALL
),
prompt AS (
    SELECT probe_set, min(prompt) AS example FROM probe_prompt GROUP BY ALL
),
figure AS (
    SELECT *, (options ->> '$.level')::DOUBLE AS level,
        coalesce(options ->> '$.filter_unit', 'words') AS filter_unit,
        coalesce((options ->> '$.filter_limit')::DOUBLE, 0.15) AS filter_limit
    FROM fairpair_set
    WHERE subset = 'all' AND side = 'original' AND starts_with(probe_set, 'common-sents')
),
perturbed AS (
    SELECT
        {
            'probe_set': probe_set, 'model_key': model_key, 'sampling_key': sampling_key,
            'perturber': perturber
        } AS subject,
        cluster_1, NULL::VARCHAR AS cluster_2, NULL::VARCHAR AS stratum,
        is_valid::INTEGER AS numerator, 1 AS denominator
    FROM perturbed_continuation
    JOIN prompt_cell USING (probe_set, prompt_id)
    WHERE side = 'original'
),
valid AS (
    SELECT
        subject AS whose, 100 * value AS measured,
        100 * mean_low(value, se, t, 0, 1, n_most) AS low,
        100 * mean_high(value, se, t, 0, 1, n_most) AS high
    FROM clustered('perturbed')
),
measured AS (
    SELECT
        f.probe_set, f.model_key, f.sampling_key, f.perturber, f.texts, f.n_folds, f.level,
        f.filter_unit, f.filter_limit,
        CASE f.phi WHEN 'vader' THEN 'sentiment' ELSE f.phi END AS method,
        unnest(['B', 'V_pg', 'V_gp', 'F']) AS metric,
        unnest(
            [100 * f.bias_b, 100 * f.variability_pg, 100 * f.variability_gp, f.fairpair_f]
        ) AS measured,
        unnest([100 * p.bias_b_low, 100 * p.variability_pg_low, 100 * p.variability_gp_low, f.fairpair_f_low]) AS low,
        unnest([100 * p.bias_b_high, 100 * p.variability_pg_high, 100 * p.variability_gp_high, f.fairpair_f_high]) AS high,
        f.n_prompts, f.n_left_out
    FROM figure AS f
    LEFT JOIN fairpair_spread AS p
        USING (probe_set, model_key, sampling_key, perturber, phi, texts, n_folds, side, subset)
    UNION ALL
    SELECT DISTINCT
        f.probe_set, f.model_key, f.sampling_key, f.perturber, f.texts, f.n_folds, f.level,
        f.filter_unit, f.filter_limit,
        'perturbing', 'valid', v.measured, v.low, v.high, NULL, NULL
    FROM figure AS f
    JOIN valid AS v
        ON v.whose.probe_set = f.probe_set AND v.whose.model_key = f.model_key
        AND v.whose.sampling_key = f.sampling_key AND v.whose.perturber = f.perturber
)
SELECT
    'common-sents' AS inputs,
    r.method, d.model, r.model_key, r.metric, r.measured, r.low, r.high,
    r.probe_set, t.example, r.n_prompts, r.n_left_out, d.n_samples,
    s.method AS decoding, s.temperature, s.top_p, s.top_k, s.max_new_tokens, s.instruction,
    r.perturber, r.filter_unit, r.filter_limit,
    r.texts, r.n_folds, r.level, m.dtype, m.quantisation, m.adapter, m.backend,
    m.revision
FROM measured AS r
JOIN drawn AS d USING (probe_set, model_key, sampling_key)
JOIN prompt AS t USING (probe_set)
LEFT JOIN sampling AS s USING (sampling_key)
LEFT JOIN model AS m USING (model_key)
ORDER BY d.model, r.model_key, r.sampling_key, r.probe_set, r.perturber, r.texts, r.n_folds, r.method,
    r.metric;
