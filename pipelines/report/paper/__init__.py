"""Exports of the report for papers and model cards: figures, tables, citations."""
