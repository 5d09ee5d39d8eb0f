"""The schema of every table: its columns with types and units, its key and its partitions."""
