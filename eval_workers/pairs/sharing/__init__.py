"""Sharing a benchmark: a folder with its pairs, a card and a task of lm-evaluation-harness."""
