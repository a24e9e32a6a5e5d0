"""The maintenance of tables as Spark jobs."""
