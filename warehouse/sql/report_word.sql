-- grain: corpus x contrast x word, $top a side, female first
WITH common AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY corpus, contrast ORDER BY delta_nats DESC, word) AS from_f,
        row_number() OVER (PARTITION BY corpus, contrast ORDER BY delta_nats, word) AS from_m
    FROM word_delta
    WHERE coalesce(least(n_pair_f, n_pair_m), $min_pairs) >= $min_pairs
        AND contrast IN (FROM main_contrast)
)
SELECT
    corpus, contrast, word, n_word, n_pair_f, n_pair_m, delta_nats,
    if(delta_nats > 0, from_f, from_m) AS place
FROM common
WHERE (delta_nats > 0 AND from_f <= $top) OR (delta_nats < 0 AND from_m <= $top)
ORDER BY corpus, contrast, delta_nats DESC, word;
