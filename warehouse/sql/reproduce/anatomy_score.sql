-- grain: model x benchmark x pair_id, in this order: released scores of the pairs of anatomy_pair
-- A model of no known family is one by itself.
SELECT s.model, coalesce(m.family, s.model) AS family, s.benchmark, s.pair_id, s.log_ratio_nats
FROM scored_pair AS s
JOIN model AS m ON m.model_key = s.model_key AND m.backend = 'released'
JOIN pair_association AS a USING (benchmark, pair_id)
WHERE a.corpus = $corpus AND a.contrast = 'she/he'
ORDER BY s.model, s.benchmark, s.pair_id;
