"""Benchmarks that a user brings: pairs in a file, or templates with words to fill in."""
