"""DELETE, UPDATE and MERGE as Spark jobs."""
