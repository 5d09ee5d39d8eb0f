-- grain: model x scores x benchmark x groups x corpus x contrast x subset x measure
-- What deduplicating the training text changes. Each model is compared with its twin, whose name
-- ends in `-deduped` and which was scored in the same way, on the pairs that both scored. US and
-- PD, both in percentage points, are of all pairs and of those that meet |MaxPMI| <= eta_limit
-- nats. difference is twin minus model, with a 95% interval over clusters of pairs (`clustered`).
-- Table 2 of UnStereoEval prints the differences of US at 0.65.
CREATE OR REPLACE MACRO deduplication(eta_limit := 0.65, epsilon := ln(1.65)) AS TABLE
WITH twin AS (
    SELECT
        p.model, p.model_key AS plain_key, d.model_key AS deduped_key,
        CASE WHEN p.backend = 'released' THEN 'released' ELSE 'own' END AS scores
    FROM model AS p
    JOIN model AS d
        ON d.model = p.model || '-deduped'
        AND d.backend = p.backend
        AND (d.dtype, d.step, d.quantisation, d.adapter, d.text_form, d.measure)
            IS NOT DISTINCT FROM
            (p.dtype, p.step, p.quantisation, p.adapter, p.text_form, p.measure)
),
leaning AS (
    SELECT
        t.model, t.scores, p.benchmark, p.groups, p.pair_id,
        lean(p.log_ratio_nats, epsilon) AS old,
        lean(d.log_ratio_nats, epsilon) AS new
    FROM twin AS t
    JOIN scored_pair AS p ON p.model_key = t.plain_key
    JOIN scored_pair AS d
        ON d.model_key = t.deduped_key AND d.benchmark = p.benchmark AND d.pair_id = p.pair_id
),
subset_of AS (
    SELECT *, '' AS corpus, '' AS contrast, 'all' AS subset FROM leaning
    UNION ALL
    SELECT leaning.*, a.corpus, a.contrast, '|max_pmi| <= ' || eta_limit::DOUBLE
    FROM leaning
    JOIN pair_association AS a USING (benchmark, pair_id)
    WHERE meets_constraint(a.max_pmi_nats, a.n_words_unknown, eta_limit)
),
figure AS (
    SELECT
        {
            'model': model, 'scores': scores, 'benchmark': benchmark, 'groups': groups,
            'corpus': corpus, 'contrast': contrast, 'subset': subset, 'measure': measure
        } AS subject,
        cluster_1, cluster_2, stratum, new - old AS numerator, 1 AS denominator, old
    FROM (
        SELECT
            * EXCLUDE (old, new), unnest(['us', 'pd']) AS measure,
            unnest([(old = 0)::INTEGER, old]) AS old, unnest([(new = 0)::INTEGER, new]) AS new
        FROM subset_of
    )
    JOIN pair_cell USING (benchmark, pair_id)
),
plain AS (SELECT subject, 100 * avg(old) AS plain_figure FROM figure GROUP BY subject),
counted AS (
    SELECT
        unnest(c.subject), n, n_clusters, plain_figure, plain_figure + 100 * value AS deduped_figure,
        100 * value AS difference,
        100 * if(c.subject.measure = 'us', bonett_price(share_above, share_below, n_star, -t), mean_low(value, se, t, -2, 2))
            AS low,
        100 * if(c.subject.measure = 'us', bonett_price(share_above, share_below, n_star, t), mean_high(value, se, t, -2, 2))
            AS high
    FROM clustered('figure') AS c
    JOIN plain USING (subject)
)
SELECT
    model, scores, benchmark, groups, corpus, contrast, subset, measure, n,
    plain_figure, deduped_figure, difference, low AS difference_low, high AS difference_high,
    direction_of(low, high, n_of := n_clusters) AS direction
FROM counted;
