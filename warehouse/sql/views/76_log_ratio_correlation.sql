-- grain: reference_key x model_key x benchmark x groups, every two models once, reference_key first
-- Do two models agree about pairs? Pearson's correlation of their log ratios over the pairs that
-- both scored; NULL below three pairs and where the log ratios of one of them are all the same.
CREATE OR REPLACE VIEW log_ratio_correlation AS
SELECT
    r.model_key AS reference_key, m.model_key, benchmark, m.groups, count(*) AS n_pairs,
    CASE
        WHEN count(*) > 2
            AND stddev_pop(r.log_ratio_nats) > 1e-9 AND stddev_pop(m.log_ratio_nats) > 1e-9
            THEN corr(r.log_ratio_nats, m.log_ratio_nats ORDER BY pair_id)
    END AS correlation
FROM scored_pair AS r
JOIN scored_pair AS m USING (benchmark, pair_id)
WHERE r.model_key < m.model_key
GROUP BY ALL;
