"""The report: one self-contained HTML page and PNG plots."""
