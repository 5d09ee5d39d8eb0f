"""Imports results of others: released scores and MaxPMI, and logs of lm-evaluation-harness.

Every row of a file becomes a row in ``reject`` or in a table of results. If a pair of the benchmark
has no usable row, it counts as missing.
"""
