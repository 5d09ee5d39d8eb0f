-- grain: corpus x contrast x word, words with a delta or a co-occurrence with either side
-- The bound of an interval that is nearer 0: 0 if the interval contains 0, the estimate itself if
-- the interval is unknown.
CREATE OR REPLACE MACRO bound_nearer_zero(estimate, low_end, high_end) AS CASE
    WHEN low_end IS NULL OR high_end IS NULL THEN estimate
    WHEN low_end > 0 THEN low_end
    WHEN high_end < 0 THEN high_end
    ELSE 0
END;

-- Leans that `corpus associate` computed, with intervals over co-occurrences. For a pair of words
-- the intervals are those of `word_bound`. For a list's mean or sum they come from the standard
-- error, or from both sides' counts if the word has no delta. Imported statistics have no
-- intervals. is_other: the word is not one of the contrast's own words.
CREATE OR REPLACE VIEW counted_lean AS
SELECT
    *,
    bound_nearer_zero(delta_nats, delta_nats_low, delta_nats_high) AS lean_bound_nats,
    NOT list_contains(string_split(contrast, '/'), word) AS is_other
FROM (
    SELECT
        corpus, contrast, word,
        coalesce(b.n_word, d.n_word) AS n_word,
        coalesce(b.n_pair_f, d.n_pair_f) AS n_pair_f,
        coalesce(b.n_pair_m, d.n_pair_m) AS n_pair_m,
        d.n_defined, d.delta_nats, d.delta_nats_se,
        b.p IS NOT NULL AND (d.delta_nats IS NULL OR contains(contrast, '/')) AS is_exact,
        if(is_exact, b.sides_nats_low, delta_nats - z975() * delta_nats_se) AS delta_nats_low,
        if(is_exact, b.sides_nats_high, delta_nats + z975() * delta_nats_se) AS delta_nats_high,
        b.p, b.q
    FROM word_bound AS b FULL JOIN word_delta AS d USING (corpus, contrast, word)
);
