"""Models that another process computes: a server that echoes, or vLLM's engine."""
