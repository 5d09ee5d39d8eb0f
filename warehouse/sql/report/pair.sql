-- grain: benchmark x model_key x pair_id, $top per side, those preferring the female sentence first
WITH ranked AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY benchmark, model_key ORDER BY log_ratio_nats DESC, pair_id)
            AS from_f,
        row_number() OVER (PARTITION BY benchmark, model_key ORDER BY log_ratio_nats, pair_id)
            AS from_m
    FROM scored_pair
)
SELECT benchmark, model_key, model, pair_id, log_ratio_nats, sentence_f, sentence_m
FROM ranked
WHERE (log_ratio_nats > 0 AND from_f <= $top) OR (log_ratio_nats < 0 AND from_m <= $top)
ORDER BY benchmark, model, model_key, log_ratio_nats DESC, pair_id;
