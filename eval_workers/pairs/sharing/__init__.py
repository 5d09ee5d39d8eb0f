"""Sharing a benchmark: card and data set, upload to the hub, tasks of evaluation harnesses."""
