"""Store the files of tables. No other code writes, renames or deletes them."""
