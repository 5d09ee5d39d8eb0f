"""How foreign text is shown and read: terminal, CSV, placeholders."""
