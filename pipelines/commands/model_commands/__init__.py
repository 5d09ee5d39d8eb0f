"""Commands that run models."""
