"""The only code that writes, renames or deletes tables."""
