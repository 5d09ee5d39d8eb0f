-- grain: shard that has more than one row in `corpus_shard`
SELECT shard, count(*) AS n_rows FROM corpus_shard WHERE corpus = $corpus
GROUP BY shard HAVING count(*) > 1;
