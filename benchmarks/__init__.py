"""Timings side by side with peers, as ratios; run with `make bench`."""
