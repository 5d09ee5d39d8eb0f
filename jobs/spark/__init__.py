"""Count on Spark: the engine, session, code archive and Java. Only this package imports pyspark."""
