"""Store the files of tables. Only this package writes, renames or deletes these files."""
