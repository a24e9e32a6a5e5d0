"""The upkeep of tables as Spark jobs."""
