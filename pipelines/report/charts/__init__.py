"""Charts of the report: one theme, and functions from rows to Altair charts."""
