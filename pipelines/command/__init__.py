"""How classes become commands: declaration, names, command line. See `docs/design.md`."""
