"""The `plumbline` command and its subcommands, Prefect flows, and the report."""
