"""The whole mission, once."""
