-- grain: model_key x benchmark x groups x corpus x contrast x eta of the list
-- US against the limit eta on |MaxPMI|, with its interval over clusters (`clustered`) and the number of
-- pairs, e.g. `FROM us_curve([x / 20 FOR x IN range(41)])`. An eta that no pair meets has n_pairs 0 and
-- no US.
CREATE OR REPLACE MACRO us_curve(etas, epsilon := ln(1.65)) AS TABLE
WITH figure AS (
    SELECT
        {
            'model_key': model_key, 'model': model, 'benchmark': s.benchmark, 'groups': groups,
            'corpus': corpus, 'contrast': contrast, 'eta_nats': eta_nats
        } AS subject,
        cluster_1, cluster_2, stratum,
        (is_member AND within(log_ratio_nats, epsilon))::INTEGER AS numerator,
        is_member::INTEGER AS denominator
    FROM scored_subset(etas) AS s
    JOIN pair_cell USING (benchmark, pair_id)
    WHERE eta_nats IS NOT NULL
)
SELECT
    unnest(subject), value AS us, wilson_low(value, n_star, t) AS us_low,
    wilson_high(value, n_star, t) AS us_high, n AS n_pairs, n_clusters
FROM clustered('figure')
ORDER BY
    subject.benchmark, subject.model, subject.model_key, subject.groups, subject.corpus,
    subject.contrast, subject.eta_nats;
