"""Perturbers, which turn a text about one person into the same text about a counterpart."""
