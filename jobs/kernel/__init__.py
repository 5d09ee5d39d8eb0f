"""The counting kernel: text to counts of words and pairs, in compiled code."""
