"""Make the report: HTML pages about the results in a warehouse."""
