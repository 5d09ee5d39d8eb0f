"""Query a warehouse with DuckDB, keep users' SQL read-only, and generate the SQL reference."""
