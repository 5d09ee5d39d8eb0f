"""Sentences with the pronouns of one group, made from templates or from other sentences."""
