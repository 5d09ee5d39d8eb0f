"""B, V and F for a prompt and for a set, with tests, intervals and convergence."""
