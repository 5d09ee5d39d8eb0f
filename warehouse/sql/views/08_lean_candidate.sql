-- grain: corpus x contrast x word, at most 200 per side
-- The words that lean most by `counted_lean`, at most 200 on each side. `why` explains them before
-- pages rank words.
CREATE OR REPLACE VIEW lean_candidate AS
SELECT corpus, contrast, word, lean_bound_nats
FROM counted_lean
WHERE is_other AND lean_bound_nats <> 0
QUALIFY row_number() OVER (
    PARTITION BY corpus, contrast, lean_bound_nats > 0 ORDER BY abs(lean_bound_nats) DESC, word
) <= 200;
