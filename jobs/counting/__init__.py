"""Count a corpus: count each shard, merge the counts, and check and read the results."""
