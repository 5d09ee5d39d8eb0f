-- grain: as metric_value, slopes on the lean of a text that have an interval, and their reliability
-- Of a model that was trained on a corpus of this warehouse, only those on this corpus.
SELECT
    *,
    max(value) FILTER (metric = 'reliability') OVER (
        PARTITION BY model_key, benchmark, groups, corpus, contrast, subset, options
    ) AS reliability
FROM metric_value
WHERE metric IN ('slope', 'reliability')
    AND (
        model_key NOT IN (SELECT model_key FROM trained_key)
        OR (model_key, corpus) IN (SELECT (model_key, corpus) FROM trained_key)
    )
QUALIFY metric = 'slope' AND ci_low IS NOT NULL
ORDER BY benchmark, groups, model, model_key, corpus, contrast, eta_nats, subset;
