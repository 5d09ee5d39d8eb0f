"""Spark: its engine, session, archive and Java. Nothing else imports pyspark."""
