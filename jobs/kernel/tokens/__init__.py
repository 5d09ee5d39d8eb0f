"""From text to words: the rules of languages, the table of words, the tokenizer."""
