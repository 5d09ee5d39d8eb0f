"""Spark settings, each line with its reason."""
