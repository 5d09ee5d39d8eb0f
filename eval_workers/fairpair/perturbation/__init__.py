"""A text about one person becomes the same text about a counterpart."""
