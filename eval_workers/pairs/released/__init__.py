"""Imports results of others: released scores and MaxPMI, and logs of lm-evaluation-harness.

Every row of a file becomes a row of ``reject`` or of a table of results. A pair of the benchmark
without a usable row counts as missing.
"""
