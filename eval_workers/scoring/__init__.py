"""Log-probabilities of sentence pairs and held-out documents, forced choice, and statistics."""
