"""A user's own benchmarks: pairs in a file, or templates with words to fill in."""
