"""Compute and publish the missing rows of a table. A command that was stopped can resume."""
