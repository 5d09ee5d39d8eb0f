"""Search pages beside the report: for words of the texts, and for sentence pairs."""
