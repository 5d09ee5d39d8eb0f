"""Pairs that people judge: sheets for raters, their answers, how far they agree."""
