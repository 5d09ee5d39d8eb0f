-- grain: model x benchmark x pair_id, natural pairs of the released scores of $models
-- Log ratios, and the MaxPMI (she/he) in $corpus.
SELECT s.model, m.family, s.benchmark, s.pair_id, s.log_ratio_nats, a.max_pmi_nats
FROM scored_pair AS s
JOIN model AS m ON m.model_key = s.model_key AND m.backend = 'released'
LEFT JOIN pair_association AS a
    ON a.benchmark = s.benchmark AND a.pair_id = s.pair_id
    AND a.corpus = $corpus AND a.contrast = 'she/he'
WHERE list_contains($models::VARCHAR[], s.model);
