"""Queries of people: the shell, completion, and how results are shown and written."""
