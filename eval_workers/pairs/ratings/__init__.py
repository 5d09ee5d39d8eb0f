"""Human ratings of pairs: the answers of raters, and their agreement."""
