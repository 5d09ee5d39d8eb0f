"""Kinds of models that are loaded here, and what each computes of a text."""
