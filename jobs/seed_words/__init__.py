"""Choose a corpus's seed words: find candidates, draw a sample, record a person's verdicts."""
