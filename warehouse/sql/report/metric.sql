-- grain: as corrected_metric
-- Figures of all pairs also have the model's rank and its interval (`model_rank`).
SELECT m.*, rank, rank_low, rank_high
FROM corrected_metric AS m
LEFT JOIN model_rank AS r
    ON r.benchmark = m.benchmark AND r.groups = m.groups AND r.metric = m.metric
    AND r.model_key = m.model_key AND m.subset = 'all' AND (m.metric <> 'aufc' OR m.unit = 'nats')
ORDER BY
    m.benchmark, m.groups, m.model, m.model_key, corpus, contrast, eta_nats, subset, m.metric, options;
