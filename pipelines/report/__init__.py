"""The report: HTML pages about what a warehouse holds."""
