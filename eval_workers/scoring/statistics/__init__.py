"""Statistical inference: ranks, power, variance components, controls."""
