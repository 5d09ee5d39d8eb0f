"""Text files, splits and released statistics as corpora."""
