"""Store all results in tables of Parquet files, and query them with DuckDB."""
