"""The report's search pages: words of the texts, and sentence pairs."""
