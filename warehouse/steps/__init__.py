"""Resumable steps: missing rows are computed in chunks and published together."""
