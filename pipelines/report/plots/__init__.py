"""Plots as SVG text, each from plain rows."""
