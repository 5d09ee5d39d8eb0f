"""The compiled counter and tokenizer."""
