-- grain: as corrected_metric, slopes on the lean of a text, and the reliability of these leans
-- Of a model that was trained on a corpus of this warehouse, only those on this corpus. A slope on
-- leans that are mostly noise (reliability under 0.3) bears no claim: its q is 1.
SELECT
    * REPLACE (if(reliability < 0.3, 1, q) AS q)
FROM (
SELECT
    *,
    max(value) FILTER (metric = 'reliability') OVER (
        PARTITION BY model_key, benchmark, groups, corpus, contrast, subset, options
    ) AS reliability
FROM corrected_metric
WHERE metric IN ('slope', 'reliability')
    AND (
        model_key NOT IN (SELECT model_key FROM trained_key)
        OR (model_key, corpus) IN (SELECT (model_key, corpus) FROM trained_key)
    )
QUALIFY metric = 'slope' AND value IS NOT NULL
)
ORDER BY benchmark, groups, model, model_key, corpus, contrast, eta_nats, subset, options;
