-- grain: corpus x word, ten a side
-- Which words lean most to each side?
-- delta_nats is positive for words that keep company with she, negative for he; 0.69 nats is a factor
-- of two. Words seen fewer than five times with either pronoun are left out: chance decides theirs.
SELECT corpus, word, n_word, n_pair_f, n_pair_m, round(delta_nats, 2) AS delta_nats
FROM word_delta
WHERE contrast = 'she/he' AND n_pair_f >= 5 AND n_pair_m >= 5
QUALIFY least(
    row_number() OVER (PARTITION BY corpus ORDER BY delta_nats, word),
    row_number() OVER (PARTITION BY corpus ORDER BY delta_nats DESC, word)
) <= 10
ORDER BY corpus, delta_nats DESC;
