"""Text with some of its words exchanged, to see what a model trained on it makes of them."""
