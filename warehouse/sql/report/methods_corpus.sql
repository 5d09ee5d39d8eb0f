-- grain: corpus
-- shards_hash: first 16 digits of the SHA-256 of its counted shards' sorted fingerprints, one a line
SELECT c.*, s.shards_hash, s.n_failed
FROM corpus AS c
LEFT JOIN (
    SELECT
        corpus,
        sha256(
            string_agg(fingerprint, chr(10) ORDER BY fingerprint) FILTER (status = 'counted')
        )[:16] AS shards_hash,
        count(*) FILTER (status = 'failed') AS n_failed
    FROM corpus_shard
    GROUP BY corpus
) AS s USING (corpus)
ORDER BY corpus;
