"""Vocabulary, language, sampling and vetting of seed words."""
