"""Imports results that others released: scores of pairs, and their MaxPMI.

Every row of a released file becomes a row of ``reject`` or of a table of results. A pair of the
benchmark without a usable row counts as missing.
"""
