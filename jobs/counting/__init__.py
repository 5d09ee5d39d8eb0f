"""From a corpus to counts: shards, partials, merge, verification."""
