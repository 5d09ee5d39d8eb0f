"""Make command-line commands from classes. See `docs/design.md`."""
