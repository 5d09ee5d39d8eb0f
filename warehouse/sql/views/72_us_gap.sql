-- grain: model_key x groups x contrast, one row per contrast unless a name has several scoring identities
-- US(|MaxPMI| <= eta_a) - US(|MaxPMI| <= eta_b) of one model, NULL for an eta standing for all pairs,
-- with its interval over clusters of pairs (`clustered`), e.g.
-- `FROM us_gap('A', 'use-5', 'pile', 0.65, NULL)`. A pair's part is how far it moves either share, so
-- that the error counts the pairs that both subsets have.
CREATE OR REPLACE MACRO us_gap(
    model_name, benchmark_name, corpus_name, eta_a, eta_b, epsilon := ln(1.65)
) AS TABLE
WITH scored AS (
    SELECT
        {
            'model': model, 'benchmark': p.benchmark, 'groups': groups, 'corpus': corpus,
            'contrast': contrast, 'model_key': model_key
        } AS subject,
        cluster_1, cluster_2, stratum,
        (lean(log_ratio_nats, epsilon) = 0)::INTEGER AS even,
        CASE
            WHEN eta_a IS NULL OR meets_constraint(p.max_pmi_nats, p.n_words_unknown, eta_a)
                THEN even
        END AS even_a,
        CASE
            WHEN eta_b IS NULL OR meets_constraint(p.max_pmi_nats, p.n_words_unknown, eta_b)
                THEN even
        END AS even_b
    FROM scored_pair_association AS p
    JOIN pair_cell AS c ON c.benchmark = p.benchmark AND c.pair_id = p.pair_id
    WHERE p.benchmark = benchmark_name
        AND p.corpus = corpus_name
        AND model_name IN (p.model, p.model_key)
),
observed AS (
    SELECT
        subject, avg(even_a) AS us_a, avg(even_b) AS us_b, us_a - us_b AS gap,
        count(even_a) AS n_a, count(even_b) AS n_b, count(*) AS n_all
    FROM scored
    GROUP BY subject
),
figure AS (
    SELECT
        subject, cluster_1, cluster_2, stratum,
        coalesce(even_a - us_a, 0) * n_all / n_a - coalesce(even_b - us_b, 0) * n_all / n_b + gap
            AS numerator,
        1 AS denominator
    FROM scored
    JOIN observed USING (subject)
    WHERE gap IS NOT NULL
)
SELECT
    subject.model, subject.benchmark, subject.groups, subject.corpus, subject.contrast, us_a, us_b, gap,
    se AS gap_se,
    mean_low(gap, se, t) AS gap_low, mean_high(gap, se, t) AS gap_high,
    n_a, n_b, n_clusters, subject.model_key
FROM observed
LEFT JOIN clustered('figure') USING (subject)
ORDER BY subject.model, subject.model_key, subject.groups, subject.contrast;
