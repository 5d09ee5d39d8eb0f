"""Show text to people (escaping, printing, progress), read TOML files, check placeholders."""
