"""How a corpus gets into the warehouse: counted shards, packed texts, released statistics."""
