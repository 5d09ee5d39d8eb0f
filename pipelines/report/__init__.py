"""The report: one self-contained HTML page and SVG plots."""
