-- grain: shard whose number of rows in `reject` differs from its ledger
WITH rejected AS (
    SELECT source_file AS shard, count(*) AS n
    FROM reject WHERE stage = 'count' AND subject = $corpus GROUP BY ALL
), ledger AS (
    SELECT shard, sum(n_rejected) AS n_rejected
    FROM corpus_shard WHERE corpus = $corpus GROUP BY ALL
)
SELECT shard, coalesce(n_rejected, 0) AS in_ledger, coalesce(n, 0) AS in_reject
FROM ledger FULL JOIN rejected USING (shard)
WHERE coalesce(n_rejected, 0) <> coalesce(n, 0);
