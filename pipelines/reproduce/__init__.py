"""Compare the figures that papers print with figures from their data or from your runs."""
