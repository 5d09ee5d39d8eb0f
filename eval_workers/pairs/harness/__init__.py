"""Benchmarks for Inspect and lm-evaluation-harness; imports of scores from logs and records."""
