"""Read input files, on disk or at an address: CSV, text, and shards of documents."""
