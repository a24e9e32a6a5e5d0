"""Delta tables in SQL: Java classes that Spark loads by name, and the code that installs them into a session."""
