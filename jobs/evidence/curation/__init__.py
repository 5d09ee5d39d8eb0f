"""Audit of a filter or deduplication: its effect on a counted text, and on a model as predicted."""
