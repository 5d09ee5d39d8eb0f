-- grain: model_key x benchmark x pair_id x corpus x contrast
-- The rows of `audited_pair` for natural pairs that have a log ratio and a corpus to compare it
-- with. The MaxPMI may be NULL; a benchmark without associations has no rows here.
CREATE OR REPLACE VIEW scored_pair_association AS
SELECT *
FROM audited_pair
WHERE is_natural IS NOT FALSE AND log_ratio_nats IS NOT NULL AND corpus IS NOT NULL;
