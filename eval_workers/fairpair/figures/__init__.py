"""B, V and F for a prompt and for a set, with tests, intervals, calibration and convergence."""
