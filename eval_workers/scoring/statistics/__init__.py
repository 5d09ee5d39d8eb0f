"""Statistical inference: ranks, power, controls."""
