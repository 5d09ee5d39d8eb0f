"""Models trained on a corpus: new, continued or with an adapter."""
