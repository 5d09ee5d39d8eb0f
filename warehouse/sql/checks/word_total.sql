-- grain: total of `word_count` and the pruned words that differs from the ledger or the corpus
WITH words AS (
    SELECT coalesce(sum(n_word), 0) AS n_tokens, count(*) AS n_words
    FROM word_count WHERE corpus = $corpus
), ledger AS (
    SELECT coalesce(sum(n_kept_tokens), 0) AS n_kept_tokens FROM corpus_shard WHERE corpus = $corpus
)
SELECT
    'n_kept_tokens' AS total, w.n_tokens AS in_word_count, c.n_tokens_pruned AS pruned,
    l.n_kept_tokens AS expected
FROM words AS w, ledger AS l, corpus AS c
WHERE c.corpus = $corpus AND w.n_tokens + c.n_tokens_pruned <> l.n_kept_tokens
UNION ALL
SELECT 'n_words_kept', w.n_words, c.n_words - c.n_words_kept, c.n_words_kept
FROM words AS w, corpus AS c WHERE c.corpus = $corpus AND w.n_words <> c.n_words_kept;
