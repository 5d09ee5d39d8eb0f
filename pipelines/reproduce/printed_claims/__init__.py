"""Claims of papers on their own printed tables, for those that released no results."""
