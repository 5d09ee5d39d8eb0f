"""Compares figures that papers printed with those of their data or of runs."""
