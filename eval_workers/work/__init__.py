"""The one resumable step: what is missing, computed in chunks, published together."""
