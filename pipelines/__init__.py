"""The `plumbline` command, settings, Prefect flows that run commands, and the report."""
