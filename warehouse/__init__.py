"""The warehouse: table schemas, the Parquet store, DuckDB views and SQL metrics."""
