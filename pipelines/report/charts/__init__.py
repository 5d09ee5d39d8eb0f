"""Functions that draw the report's charts from rows, with Altair."""
