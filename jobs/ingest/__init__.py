"""Packing text files, importing released statistics."""
