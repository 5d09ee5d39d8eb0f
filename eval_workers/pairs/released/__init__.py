"""Results that others released, read into the warehouse: scores of pairs, and their MaxPMI.

Every row of a released file becomes a row of the warehouse or of ``reject``, and every pair of the
benchmark that no row speaks of is counted as missing.
"""
