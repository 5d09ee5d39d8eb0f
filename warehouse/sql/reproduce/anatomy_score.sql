-- grain: model x benchmark x pair_id, in this order: released scores of the pairs of anatomy_pair
SELECT s.model, s.benchmark, s.pair_id, s.log_ratio_nats
FROM scored_pair AS s
JOIN pair_association AS a USING (benchmark, pair_id)
WHERE s.model_key IN (SELECT model_key FROM model WHERE backend = 'released')
    AND a.corpus = $corpus AND a.contrast = 'she/he'
ORDER BY s.model, s.benchmark, s.pair_id;
