"""Compute the missing rows of a table in chunks, which can be resumed, and publish the rows."""
