"""Train models on a corpus: a new model, an existing one, or an adapter."""
