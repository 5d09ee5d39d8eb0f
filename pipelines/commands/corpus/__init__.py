"""Commands on texts and their words."""
