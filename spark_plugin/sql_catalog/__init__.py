"""Delta tables in SQL: Java classes that Spark loads by name, and the code that installs them into a session.

In: a session. Out: its catalogs and procedures, or the artifacts that a client of Spark Connect sends to the server.
"""
