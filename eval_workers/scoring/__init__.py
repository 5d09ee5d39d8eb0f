"""Scores of sentence pairs, forced choices, continuations, and statistics."""
