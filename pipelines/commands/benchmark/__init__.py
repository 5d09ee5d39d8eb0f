"""`plumbline benchmark ...`: import, build, filter and share sentence pairs."""
