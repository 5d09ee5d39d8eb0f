"""The report: HTML pages of what a warehouse holds."""
