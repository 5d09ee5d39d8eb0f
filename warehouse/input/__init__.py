"""Read input texts from shards (files of many documents), on disk or at an address."""
