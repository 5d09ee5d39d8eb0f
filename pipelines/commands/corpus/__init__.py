"""Commands that count texts and show their words."""
