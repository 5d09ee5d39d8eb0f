"""Fills templates with a group's pronouns, and turns sentences into such templates."""
