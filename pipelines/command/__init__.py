"""What makes a command of a class: declaration, names, command line; see `docs/design.md`."""
