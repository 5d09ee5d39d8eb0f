"""The lean of released models in parts: the study and what is shown of it."""
