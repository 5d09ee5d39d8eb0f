"""Spark: session, archive, Java. Nothing else imports pyspark."""
