"""Texts as they come: shards of documents, of tokens, of web archives, on a disk or elsewhere."""
