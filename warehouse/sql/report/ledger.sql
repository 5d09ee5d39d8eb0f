-- grain: corpus
-- Totals as published with the corpus, beside the sums of its ledger (NULL for an imported corpus).
WITH ledger AS (
    SELECT
        corpus,
        sum(n_documents_in)::BIGINT AS n_in,
        sum(n_documents)::BIGINT AS n_counted,
        sum(n_rejected)::BIGINT AS n_rejected
    FROM corpus_shard
    GROUP BY corpus
)
SELECT
    c.corpus, c.source, c.rule, c.window_tokens, c.targets, c.n_shards, c.n_shards_failed,
    l.n_in, l.n_counted, l.n_rejected, c.n_tokens, c.n_kept_tokens, c.n_words, c.n_pairs,
    c.min_count
FROM corpus AS c
LEFT JOIN ledger AS l USING (corpus)
ORDER BY c.corpus;
