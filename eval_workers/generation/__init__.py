"""Seed words to sentence pairs: what writes a sentence about she or he, and what turns it round."""
