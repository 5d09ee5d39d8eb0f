"""Turn text into words: the rules of each language, the table of words, and the tokenizer."""
