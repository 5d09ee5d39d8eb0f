"""Get scores from a model that runs in another process: a server, or vLLM's engine."""
