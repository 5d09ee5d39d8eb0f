"""Human ratings of pairs: sheets for raters, their answers, and their agreement."""
