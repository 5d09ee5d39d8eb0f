"""Corpus statistics: tokenise, count, associate."""
