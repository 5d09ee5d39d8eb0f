"""Escape and print text, show progress, read TOML files, and check placeholders."""
