"""Benchmarks for Inspect and lm-evaluation-harness, and the scores that logs and records hold."""
