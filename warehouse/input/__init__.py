"""Input texts: shards of documents, on a disk or at an address."""
