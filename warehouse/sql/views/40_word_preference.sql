-- grain: model_key x benchmark x groups x word, words that pairs of the benchmark were made for
-- Mean log ratio over a word's pairs. Pairs that share a word are not independent, but words are.
-- Floats are summed in a fixed order, so that the same rows give the same figure.
CREATE OR REPLACE VIEW word_preference AS
SELECT
    model_key, model, benchmark, groups,
    lower(word) AS word,
    avg(log_ratio_nats ORDER BY pair_id) AS mean_log_ratio_nats,
    count(*) AS n_pairs
FROM scored_pair
WHERE word IS NOT NULL
GROUP BY ALL;
