-- grain: model_key x benchmark x pair_id x corpus x contrast
-- `scored_pair` with the MaxPMI of each pair; a benchmark without associations has no rows here.
CREATE OR REPLACE VIEW scored_pair_association AS
SELECT
    s.*,
    a.corpus,
    a.contrast,
    a.max_pmi_nats,
    a.max_pmi_word,
    a.sum_delta_nats
FROM scored_pair AS s
JOIN pair_association AS a USING (benchmark, pair_id);
