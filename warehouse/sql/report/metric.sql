-- grain: as corrected_metric
-- Figures of all pairs also have the model's rank and its interval (`model_rank`), and the number of
-- clusters of each kind in `clusters`.
WITH kind AS (
    SELECT model_key, benchmark, groups, split_part(cluster, ': ', 1) AS kind, count(DISTINCT cluster) AS n
    FROM scored_pair JOIN pair_cluster USING (benchmark, pair_id)
    WHERE cluster <> 'pair: ' || pair_id
        AND benchmark IN (SELECT benchmark FROM metric_value WHERE contains(clusters, ','))
    GROUP BY ALL
),
counted AS (
    SELECT model_key, benchmark, groups, list(n ORDER BY kind) AS n_by_kind FROM kind GROUP BY ALL
)
SELECT m.*, rank, rank_low, rank_high, n_by_kind
FROM corrected_metric AS m
LEFT JOIN counted AS c
    ON c.model_key = m.model_key AND c.benchmark = m.benchmark AND c.groups = m.groups
    AND m.subset = 'all' AND contains(m.clusters, ',')
LEFT JOIN model_rank AS r
    ON r.benchmark = m.benchmark AND r.groups = m.groups AND r.metric = m.metric
    AND r.model_key = m.model_key AND m.subset = 'all' AND (m.metric <> 'aufc' OR m.unit = 'nats')
ORDER BY
    m.benchmark, m.groups <> 'she/he', m.groups, m.model, m.model_key, corpus, contrast, eta_nats,
    subset, m.metric, options;
