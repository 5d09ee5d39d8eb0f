"""Sentences with pronouns of one gender made from templates and other sentences."""
