-- grain: corpus x contrast x word, at most $top per side, the first side first
-- Words whose interval contains 0 are left out. On each side, place ranks words with q below 5%
-- first, then by how far their bound is from 0.
SELECT
    corpus, contrast, word, n_word, n_pair_f, n_pair_m,
    delta_nats, delta_nats_low, delta_nats_high, lean_bound_nats, q, over,
    row_number() OVER (
        PARTITION BY corpus, contrast, lean_bound_nats > 0
        ORDER BY q < 0.05 DESC, abs(lean_bound_nats) DESC, word
    ) AS place
FROM word_lean SEMI JOIN shown_contrast USING (corpus, contrast)
WHERE is_ranked AND lean_bound_nats <> 0
QUALIFY place <= $top
ORDER BY corpus, contrast, lean_bound_nats DESC, word;
