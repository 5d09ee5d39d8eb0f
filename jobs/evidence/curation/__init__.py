"""What a filter or deduplication did to a counted text, and what it would do to a model."""
