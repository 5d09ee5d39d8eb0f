-- grain: model x benchmark x start: pairs whose pronoun is first, or later
-- US and PD of `measured` (rows of `metric_value`) with 95% intervals, NULL with too few clusters.
SELECT
    model, benchmark, subset AS start, max(n) AS n_pairs,
    max(value) FILTER (metric = 'us') AS us,
    max(value_low) FILTER (metric = 'us') AS us_low,
    max(value_high) FILTER (metric = 'us') AS us_high,
    max(value) FILTER (metric = 'pd') AS pd,
    max(value_low) FILTER (metric = 'pd') AS pd_low,
    max(value_high) FILTER (metric = 'pd') AS pd_high
FROM measured
WHERE subset LIKE 'pronoun %' AND metric IN ('us', 'pd') AND n > 0
GROUP BY ALL
ORDER BY model, benchmark, start;
