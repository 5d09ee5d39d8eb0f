"""Which documents of a text made a preference of a model."""
