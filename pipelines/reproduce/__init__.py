"""Figures that papers printed beside those of their data or of runs."""
