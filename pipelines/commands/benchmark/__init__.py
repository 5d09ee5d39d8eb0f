"""Commands on sentence pairs."""
