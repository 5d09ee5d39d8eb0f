"""Train new models on a corpus, and tune adapters on prompts."""
