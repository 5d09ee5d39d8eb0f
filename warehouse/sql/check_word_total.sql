-- grain: total of `word_count` that differs from the ledger's kept tokens or the corpus's words
WITH words AS (
    SELECT coalesce(sum(n_word), 0) AS n_kept_tokens, count(*) AS n_words
    FROM word_count WHERE corpus = $corpus
), ledger AS (
    SELECT coalesce(sum(n_kept_tokens), 0) AS n_kept_tokens FROM corpus_shard WHERE corpus = $corpus
)
SELECT 'n_kept_tokens' AS total, w.n_kept_tokens AS in_word_count, l.n_kept_tokens AS expected
FROM words AS w, ledger AS l WHERE w.n_kept_tokens <> l.n_kept_tokens
UNION ALL
SELECT 'n_words', w.n_words, c.n_words
FROM words AS w, corpus AS c WHERE c.corpus = $corpus AND w.n_words <> c.n_words;
