-- grain: benchmark x model, in this order: released scores of the pairs in anatomy_pair.sql
SELECT s.benchmark, list(s.log_ratio_nats ORDER BY s.pair_id) AS log_ratios_nats
FROM scored_pair AS s
JOIN model AS m ON m.model_key = s.model_key AND m.backend = 'released'
JOIN pair_association AS a USING (benchmark, pair_id)
WHERE a.corpus = $corpus AND a.contrast = 'she/he'
GROUP BY s.benchmark, s.model
ORDER BY len(s.benchmark), s.benchmark, lower(s.model);
