"""Compare figures printed in papers with figures from the papers' data or from your runs."""
