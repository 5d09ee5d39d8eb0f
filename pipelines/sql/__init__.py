"""SQL for people: the shell, completion, and the output of results."""
