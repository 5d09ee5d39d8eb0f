"""Commands made of classes: declaration, names, command line; see `docs/design.md`."""
