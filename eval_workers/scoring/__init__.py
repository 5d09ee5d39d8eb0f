"""Score sentence pairs, ask for choices, sample continuations, and compute statistics."""
