"""Findings from rows, models by text and family, and one wording per kind of finding."""
