"""Warehouse: table schemas, the Parquet store, DuckDB views and SQL metrics."""
