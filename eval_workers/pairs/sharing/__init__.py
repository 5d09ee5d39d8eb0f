"""Shares a benchmark as a folder of its pairs, a card and a task for lm-evaluation-harness."""
