-- grain: shard whose documents are not all counted or rejected, or that failed but has counts
SELECT shard, status, n_documents_in, n_documents, n_rejected, n_tokens, n_kept_tokens, n_pairs
FROM corpus_shard
WHERE corpus = $corpus AND (
    n_documents_in <> n_documents + n_rejected
    OR n_kept_tokens > n_tokens
    OR status NOT IN ('counted', 'failed')
    OR (status = 'failed' AND greatest(n_documents, n_tokens, n_kept_tokens, n_pairs) > 0)
);
