-- grain: reference_key x model_key x benchmark x groups x measure, `us` (a share) and `pd` (points)
-- US and PD of each two models on the pairs that both scored, and their difference (model minus
-- reference) with a 95% interval over clusters of pairs (`clustered`). direction says whether the
-- model's figure is lower (`fell`), higher (`rose`) or `neither`. Unless you want all models, name
-- a reference, a model or a benchmark, as in `preference_pairwise(reference := 'KEY')`; WHERE would
-- compute all of them first. Two models have a row for each as the reference, or, unless
-- `both_ways`, one row with the first key as the reference.
CREATE OR REPLACE MACRO preference_pairwise(
    epsilon := ln(1.65), reference := NULL, of_model := NULL, of_benchmark := NULL,
    both_ways := true
) AS TABLE
WITH leaning AS (
    SELECT
        r.model_key AS reference_key, m.model_key, m.benchmark, m.groups, m.pair_id,
        lean(r.log_ratio_nats, epsilon) AS old,
        lean(m.log_ratio_nats, epsilon) AS new
    FROM scored_pair AS r
    JOIN scored_pair AS m
        ON m.benchmark = r.benchmark AND m.pair_id = r.pair_id AND m.model_key <> r.model_key
    WHERE
        (reference IS NULL OR r.model_key = reference)
        AND (of_model IS NULL OR m.model_key = of_model)
        AND (of_benchmark IS NULL OR r.benchmark = of_benchmark)
        AND (both_ways OR r.model_key < m.model_key)
),
measured AS (
    SELECT
        reference_key, model_key, benchmark, groups, pair_id,
        unnest(['us', 'pd']) AS measure,
        unnest([(old = 0)::INTEGER, old]) AS old,
        unnest([(new = 0)::INTEGER, new]) AS new
    FROM leaning
),
figure AS (
    SELECT
        {
            'reference_key': reference_key, 'model_key': model_key, 'benchmark': benchmark,
            'groups': groups, 'measure': measure
        } AS subject,
        cluster_1, cluster_2, stratum, new - old AS numerator, 1 AS denominator, old
    FROM measured
    JOIN pair_cell USING (benchmark, pair_id)
),
referred AS (SELECT subject, avg(old) AS reference_mean FROM figure GROUP BY subject),
compared AS (
    SELECT
        unnest(c.subject), n AS n_pairs, reference_mean, reference_mean + value AS model_mean,
        value AS difference, n_clusters,
        -- If the difference is the same in every pair, each cluster counts as one independent row.
        if(se > 1e-9 OR value = 0, 'infinity'::DOUBLE, n_clusters) AS n_rows,
        if(c.subject.measure = 'us', bonett_price(share_above, share_below, n_star, -t), mean_low(value, se, t, -2, 2, n_rows)) AS low,
        if(c.subject.measure = 'us', bonett_price(share_above, share_below, n_star, t), mean_high(value, se, t, -2, 2, n_rows)) AS high,
        if(c.subject.measure = 'us', 1, 100) AS scale
    FROM clustered('figure') AS c
    JOIN referred USING (subject)
)
SELECT
    reference_key, model_key, benchmark, groups, measure, n_pairs,
    scale * reference_mean AS reference_mean, scale * model_mean AS model_mean,
    scale * difference AS difference, scale * low AS difference_low,
    scale * high AS difference_high, n_clusters, direction_of(low, high, n_of := n_clusters) AS direction
FROM compared;
