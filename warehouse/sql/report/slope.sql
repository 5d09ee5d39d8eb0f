-- grain: as corrected_metric, slopes on the lean of a text; few words have one without an interval
-- Of a model that was trained on a corpus of this warehouse, only those on this corpus.
SELECT *
FROM corrected_metric
WHERE metric = 'slope' AND value IS NOT NULL
    AND (
        model_key NOT IN (SELECT model_key FROM trained_key)
        OR (model_key, corpus) IN (SELECT (model_key, corpus) FROM trained_key)
    )
ORDER BY benchmark, groups, model, model_key, corpus, contrast, eta_nats, subset, options;
