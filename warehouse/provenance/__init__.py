"""Runs: what was run, with which options and versions, and what it wrote."""
