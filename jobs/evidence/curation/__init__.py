"""Audit of a filter or deduplication: its effect on a counted text, and predicted on a model."""
