"""What each command does, as plain functions: a checked request, its run, the lines it prints."""

from pathlib import Path

#: Where results go unless a command or the settings say otherwise.
DEFAULT_WAREHOUSE = Path("out/warehouse")
