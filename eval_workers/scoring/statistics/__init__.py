"""Statistical inference: ranks, power, components, controls, corrections."""
