"""A benchmark for others: card and data set, the hub, tasks of the evaluation harness."""
