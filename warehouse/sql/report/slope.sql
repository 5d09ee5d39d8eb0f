-- grain: as corrected_metric, slopes on the lean of a text, and the reliability of these leans
-- A model that was trained on a corpus of this warehouse has only its slopes on that corpus. A slope
-- on leans that are mostly noise (reliability below 0.3) supports no claim, so its q is 1.
-- Leans between other groups than the benchmark's, such as she/he for he/they, are left out.
SELECT
    * REPLACE (if(reliability < 0.3, 1, q) AS q)
FROM (
SELECT
    *,
    max(value) FILTER (metric = 'reliability') OVER (
        PARTITION BY model_key, benchmark, groups, corpus, contrast, subset, options
    ) AS reliability
FROM corrected_metric
WHERE metric IN ('slope', 'reliability') AND is_between(contrast, groups)
    AND (
        model_key NOT IN (SELECT model_key FROM trained_key)
        OR (model_key, corpus) IN (SELECT (model_key, corpus) FROM trained_key)
    )
QUALIFY metric = 'slope' AND value IS NOT NULL
)
ORDER BY benchmark, groups, model, model_key, corpus, contrast, eta_nats, subset, options;
