-- grain: model_key x groups x contrast, one row per contrast unless a name has several scoring identities
-- Paired bootstrap of US(|MaxPMI| <= eta_a) - US(|MaxPMI| <= eta_b) of one model, NULL for an eta
-- standing for all pairs, e.g. `FROM us_gap('A', 'use-5', 'pile', 0.65, NULL)`. A resample draws
-- from all scored pairs; a pair keeps its MaxPMI, and so its subsets.
-- Resamples without any pair of a subset have no gap and are left out.
CREATE OR REPLACE MACRO us_gap(
    model_name, benchmark_name, corpus_name, eta_a, eta_b,
    epsilon := ln(1.65), n_resamples := 1000, seed := 1
) AS TABLE
WITH scored AS (
    SELECT
        p.model_key, p.groups, p.contrast, p.model, p.benchmark, p.corpus,
        row_number() OVER (ORDER BY p.model_key, p.groups, p.contrast, p.pair_id) AS place,
        rank() OVER (ORDER BY p.model_key, p.groups, p.contrast) AS first_place,
        count(*) OVER (PARTITION BY p.model_key, p.groups, p.contrast) AS n,
        (lean(p.log_ratio_nats, epsilon) = 0)::INTEGER AS even,
        CASE
            WHEN eta_a IS NULL OR meets_constraint(p.max_pmi_nats, p.n_words_unknown, eta_a)
                THEN even
        END AS even_a,
        CASE
            WHEN eta_b IS NULL OR meets_constraint(p.max_pmi_nats, p.n_words_unknown, eta_b)
                THEN even
        END AS even_b
    FROM scored_pair_association AS p
    WHERE p.benchmark = benchmark_name
        AND p.corpus = corpus_name
        AND model_name IN (p.model, p.model_key)
),
resample AS (
    SELECT drawn.first_place, r.range AS resample, avg(p.even_a) - avg(p.even_b) AS gap
    FROM scored AS drawn
    CROSS JOIN range(n_resamples) AS r
    -- one integer to join on: with the keys as well, DuckDB would first join all pairs of pairs
    JOIN scored AS p ON p.place
        = drawn.first_place + resampled(seed, r.range, drawn.place - drawn.first_place, drawn.n)
    GROUP BY ALL
),
spread AS (
    SELECT
        first_place,
        stddev_samp(gap ORDER BY resample) AS se,
        quantile_cont(gap, 0.025) AS ci_low,
        quantile_cont(gap, 0.975) AS ci_high
    FROM resample
    GROUP BY ALL
),
observed AS (
    SELECT
        first_place, model_key, groups, contrast, model, benchmark, corpus,
        avg(even_a) AS us_a, avg(even_b) AS us_b, us_a - us_b AS gap,
        count(even_a) AS n_a, count(even_b) AS n_b
    FROM scored
    GROUP BY ALL
)
SELECT
    o.model, o.benchmark, o.groups, o.corpus, o.contrast,
    o.us_a, o.us_b, o.gap, s.se, s.ci_low, s.ci_high, o.n_a, o.n_b, o.model_key
FROM observed AS o
LEFT JOIN spread AS s USING (first_place)
ORDER BY o.model, o.model_key, o.groups, o.contrast;
