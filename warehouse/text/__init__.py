"""Text for people: escaping, printing, progress, columns, TOML files and placeholders."""
