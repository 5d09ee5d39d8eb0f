-- grain: corpus x contrast x word, at most 200 a side
-- The words of each side, 200 at most, that lean most over co-occurrences. A page that ranks words
-- first asks `why` about them.
CREATE OR REPLACE VIEW lean_candidate AS
SELECT corpus, contrast, word, lean_bound_nats
FROM counted_lean
WHERE is_other AND lean_bound_nats <> 0
QUALIFY row_number() OVER (
    PARTITION BY corpus, contrast, lean_bound_nats > 0 ORDER BY abs(lean_bound_nats) DESC, word
) <= 200;
