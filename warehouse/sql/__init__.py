"""Plain SQL: views, metrics and checks; the first line of each file states its grain."""
