"""PMI, delta, their standard errors, MaxPMI."""
