"""Statistical inference: change points, ranks, power, components, controls, corrections."""
