"""Forced choice: which sentence of a pair a model names when it is asked, in both orders."""
