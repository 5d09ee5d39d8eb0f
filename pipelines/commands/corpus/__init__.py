"""`plumbline corpus ...`: count words, compute their leans, sample seed words."""
