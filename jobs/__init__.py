"""Corpus statistics: tokenise, count and associate, on Spark or embedded."""
