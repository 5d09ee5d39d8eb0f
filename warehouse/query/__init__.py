"""DuckDB connections, the read-only guard, findings, history of runs, and the SQL reference."""
