"""A user's own benchmarks: pairs from a file, or templates and the words that fill them."""
