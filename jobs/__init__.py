"""Corpus statistics: tokenise, count and associate, on this machine or on Spark."""
