"""The counting kernel: compiled code that turns text into counts of words and pairs."""
