"""Models that are loaded here: their files, tokenizers, weights and forward passes."""
