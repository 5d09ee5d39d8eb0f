"""Continuations of prompts, by a model that is loaded here or behind a server."""
