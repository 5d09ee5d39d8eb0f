"""Input texts: shards of documents, tokens or web archives, on a disk or at an address."""
