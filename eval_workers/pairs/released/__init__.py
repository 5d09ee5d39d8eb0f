"""Imports results that others released: scores of pairs, and their MaxPMI.

Every row of a released file becomes a row of a table of results or of ``reject``, and every pair of
the benchmark without a row is counted as missing.
"""
