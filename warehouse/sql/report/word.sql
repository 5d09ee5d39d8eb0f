-- grain: corpus x contrast x word, $top per side, those of the first first
-- Words whose interval contains 0 are left out; place 1 has the bound farthest from 0.
SELECT
    corpus, contrast, word, n_word, n_pair_f, n_pair_m,
    lean_nats, lean_nats_low, lean_nats_high, lean_bound_nats, q, clusters,
    row_number() OVER (
        PARTITION BY corpus, contrast, lean_bound_nats > 0
        ORDER BY abs(lean_bound_nats) DESC, word
    ) AS place
FROM listed_lean SEMI JOIN shown_contrast USING (corpus, contrast)
WHERE lean_bound_nats <> 0
QUALIFY place <= $top
ORDER BY corpus, contrast, lean_bound_nats DESC, word;
