"""Exports of the report for papers: figures, tables, the paragraph on methods."""
