"""Scores from a model behind a server: the protocol of echoes, and its probe."""
