"""Reads, stores and exports sentence pairs, with their released scores and human ratings."""
