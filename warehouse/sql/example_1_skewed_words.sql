-- grain: corpus x word, ten a side
-- Which words lean most to each side? Rare words are left out: chance decides theirs.
SELECT corpus, word, n_word, n_pair_f, n_pair_m, round(delta_nats, 2) AS delta_nats
FROM word_delta
WHERE contrast = 'she/he' AND n_pair_f >= 5 AND n_pair_m >= 5
QUALIFY least(
    row_number() OVER (PARTITION BY corpus ORDER BY delta_nats),
    row_number() OVER (PARTITION BY corpus ORDER BY delta_nats DESC)
) <= 10
ORDER BY corpus, delta_nats DESC;
