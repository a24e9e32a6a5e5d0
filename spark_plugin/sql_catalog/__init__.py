"""Delta tables in SQL: Java that Spark loads by name, and what puts it into a session."""
