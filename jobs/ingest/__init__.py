"""Packing text files, splitting shards, importing released statistics."""
