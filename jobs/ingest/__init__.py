"""Bring a corpus into the warehouse: count shards, pack texts, import released statistics."""
