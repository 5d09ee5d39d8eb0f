"""Foreign text: escaping, printing, progress, CSV and placeholders."""
