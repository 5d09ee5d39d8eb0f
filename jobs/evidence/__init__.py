"""Show why a word leans to one gender: its sources, copied documents, neighbours and sentences."""
