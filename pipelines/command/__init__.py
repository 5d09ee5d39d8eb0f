"""The frame that makes commands from classes. See `docs/design.md`."""
