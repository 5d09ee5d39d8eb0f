-- grain: corpus x contrast x word, words with a delta or a co-occurrence with either side
-- The bound of an interval nearer 0: 0 when the interval contains 0, the estimate itself when the
-- interval is unknown.
CREATE OR REPLACE MACRO bound_nearer_zero(estimate, low_end, high_end) AS CASE
    WHEN low_end IS NULL OR high_end IS NULL THEN estimate
    WHEN low_end > 0 THEN low_end
    WHEN high_end < 0 THEN high_end
    ELSE 0
END;

-- How far words lean: lean_nats with its 95% interval, lean_nats_low to lean_nats_high, from
-- `word_bound`, beside delta_nats. For a pair of words lean_nats is delta_nats. A word that only one
-- side has nearby has neither, and its interval is infinite at one end. lean_bound_nats is the bound
-- of the interval nearer 0: 0 when the interval contains 0. Sort by it to list the words that lean
-- most, since a word seen once has a wide interval and can't come first by chance. Words without a
-- row of `word_bound`, those of the contrast itself, of sums over a list's pairs and of imported
-- corpora, have leans from `word_delta` alone: lean_nats is delta_nats, with the interval of its
-- standard error. Imported deltas have none: their interval is NULL and lean_bound_nats is delta_nats.
CREATE OR REPLACE VIEW word_lean AS
SELECT *, bound_nearer_zero(lean_nats, lean_nats_low, lean_nats_high) AS lean_bound_nats
FROM (
    SELECT b.*, d.n_defined, d.delta_nats, d.delta_nats_se
    FROM word_bound AS b LEFT JOIN word_delta AS d USING (corpus, contrast, word)
    UNION ALL BY NAME
    SELECT
        *,
        delta_nats AS lean_nats,
        delta_nats - z975() * delta_nats_se AS lean_nats_low,
        delta_nats + z975() * delta_nats_se AS lean_nats_high
    FROM word_delta ANTI JOIN word_bound USING (corpus, contrast, word)
);
