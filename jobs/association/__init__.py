"""Measure how strongly words are associated with gendered words: PMI, delta and MaxPMI."""
