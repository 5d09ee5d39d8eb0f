"""Models that this process loads, one module per kind, and their forward passes."""
