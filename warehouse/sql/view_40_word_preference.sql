-- grain: model_key x benchmark x word, words that pairs of the benchmark were made for
-- Mean log ratio over a word's pairs. Pairs that share a word are not independent, words are.
CREATE OR REPLACE VIEW word_preference AS
SELECT
    model_key,
    model,
    benchmark,
    lower(word) AS word,
    avg(log_ratio_nats) AS mean_log_ratio_nats,
    count(*) AS n_pairs
FROM scored_pair
WHERE word IS NOT NULL
GROUP BY ALL;
