"""Prefect flows that only sequence, settings, the report and the `plumbline` command."""
