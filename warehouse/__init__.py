"""The warehouse: schemas of its tables, their Parquet files, DuckDB views and SQL metrics."""
