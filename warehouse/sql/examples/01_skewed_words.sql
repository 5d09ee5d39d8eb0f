-- grain: corpus x word, ten per side
-- Which words lean most to each side?
-- delta_nats is positive for words that co-occur with she more than with he, negative for the
-- reverse; 0.69 nats is a factor of two. Words are ranked by the bound of the 95% interval (low to
-- high) that is nearer 0, so rare words don't come first by chance. If the interval contains 0, the
-- word is left out. A word that is near only one side has a bound, but no delta. q is p corrected
-- for all words of the corpus; over says what is taken as independent.
SELECT
    corpus, word, n_word, n_pair_f, n_pair_m,
    round(delta_nats, 2) AS delta_nats,
    round(delta_nats_low, 2) AS low,
    round(delta_nats_high, 2) AS high,
    round(q, 4) AS q,
    over
FROM word_lean
WHERE contrast = 'she/he' AND is_ranked AND lean_bound_nats <> 0
QUALIFY row_number() OVER (
    PARTITION BY corpus, lean_bound_nats > 0 ORDER BY abs(lean_bound_nats) DESC, word
) <= 10
ORDER BY corpus, lean_bound_nats DESC, word;
