"""Text with some of its words exchanged, to see how this changes a model trained on it."""
