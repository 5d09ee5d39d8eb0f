"""The process of a command: its standard streams, and the signals that stop it."""
