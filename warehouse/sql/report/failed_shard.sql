-- grain: corpus x shard that could not be read to its end
SELECT corpus, shard, error FROM corpus_shard WHERE status = 'failed' ORDER BY corpus, shard;
