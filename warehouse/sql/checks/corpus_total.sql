-- grain: total of `corpus` that differs from the sum over its ledger
WITH ledger AS (
    SELECT
        count(*) FILTER (status = 'counted') AS n_shards,
        count(*) FILTER (status = 'failed') AS n_shards_failed,
        coalesce(sum(n_documents), 0) AS n_documents,
        coalesce(sum(n_rejected), 0) AS n_rejected,
        coalesce(sum(n_tokens), 0) AS n_tokens,
        coalesce(sum(n_kept_tokens), 0) AS n_kept_tokens,
        coalesce(sum(n_pairs), 0) AS n_pairs
    FROM corpus_shard WHERE corpus = $corpus
), compared AS (
    SELECT unnest([
        {'total': 'n_shards', 'in_corpus': c.n_shards, 'in_ledger': l.n_shards},
        {'total': 'n_shards_failed', 'in_corpus': c.n_shards_failed, 'in_ledger': l.n_shards_failed},
        {'total': 'n_documents', 'in_corpus': c.n_documents, 'in_ledger': l.n_documents},
        {'total': 'n_rejected', 'in_corpus': c.n_rejected, 'in_ledger': l.n_rejected},
        {'total': 'n_tokens', 'in_corpus': c.n_tokens, 'in_ledger': l.n_tokens},
        {'total': 'n_kept_tokens', 'in_corpus': c.n_kept_tokens, 'in_ledger': l.n_kept_tokens},
        {'total': 'n_pairs', 'in_corpus': c.n_pairs, 'in_ledger': l.n_pairs}
    ]) AS x
    FROM corpus AS c CROSS JOIN ledger AS l WHERE c.corpus = $corpus
)
SELECT x.total, x.in_corpus, x.in_ledger FROM compared WHERE x.in_corpus <> x.in_ledger;
