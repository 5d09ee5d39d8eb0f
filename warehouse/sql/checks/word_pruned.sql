-- grain: corpus whose number of pruned tokens is impossible for its number of pruned words
-- A pruned word occurs 1 to min_count - 1 times. With a min_count of 1 no word is pruned.
WITH pruned AS (
    SELECT corpus, min_count, n_words - n_words_kept AS n_words, n_tokens_pruned AS n_tokens
    FROM corpus WHERE corpus = $corpus
)
SELECT min_count, n_words AS n_words_pruned, n_tokens AS n_tokens_pruned
FROM pruned
WHERE min_count < 1
    OR n_words < 0
    OR n_tokens NOT BETWEEN n_words AND n_words::HUGEINT * (min_count - 1);
