"""Every table: columns with types and units, keys, partitions."""
