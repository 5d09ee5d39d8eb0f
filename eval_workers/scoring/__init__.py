"""Log-probabilities of sentence pairs, forced choice, and statistics."""
