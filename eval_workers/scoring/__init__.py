"""Log-probabilities of text: of sentence pairs, and of held-out documents."""
