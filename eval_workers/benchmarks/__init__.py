"""Benchmarks, one file each, found by module name."""
