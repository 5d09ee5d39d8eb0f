"""Sentence pairs: their benchmarks, pronouns, released scores and ratings."""
