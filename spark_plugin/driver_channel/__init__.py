"""The channel by which the JVM asks the Python process that drives it: plans, rows, streams, commits, procedures, SQL statements.

In: requests of DriverChannel.java, each a kind and bytes. Out: the bytes that the kind's function returns.
Nobody can send a request before proving that they know the secret of the application.
"""
