"""DuckDB connections, the read-only guard, history of runs, and the SQL reference."""
