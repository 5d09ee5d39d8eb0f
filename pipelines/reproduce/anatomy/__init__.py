"""Parts of the lean of released models: the study and its tables."""
