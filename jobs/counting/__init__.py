"""A corpus to counts: shards, partials, merge, verification."""
