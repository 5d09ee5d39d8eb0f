"""Benchmarks for lm-evaluation-harness, and the scores that its sample logs hold."""
