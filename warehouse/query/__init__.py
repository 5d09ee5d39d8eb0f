"""DuckDB connections, the read-only guard, export and the SQL reference."""
