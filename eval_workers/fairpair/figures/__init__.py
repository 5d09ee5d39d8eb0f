"""B, V and F: of a prompt, of a set, with tests, intervals, calibration and convergence."""
