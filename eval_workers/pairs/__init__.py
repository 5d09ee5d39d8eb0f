"""Sentence pairs and what is known of them: benchmarks, pronouns, released scores, ratings."""
