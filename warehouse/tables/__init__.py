"""The tables, a file a subject; ``warehouse.schemas`` holds them all."""
