"""What papers say of their own printed tables, for those that released no results."""
