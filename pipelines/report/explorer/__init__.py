"""Searches beside the report: every word of the texts, and every sentence pair."""
