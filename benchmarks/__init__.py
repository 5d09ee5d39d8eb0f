"""Timings of Plumbline and other programs, as ratios; run with `make bench`."""
