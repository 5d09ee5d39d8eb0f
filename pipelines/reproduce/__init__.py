"""Compare the figures in papers with figures computed from their released data or your runs."""
