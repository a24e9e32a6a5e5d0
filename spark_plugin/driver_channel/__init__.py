"""The channel on which the JVM calls the Python process that drives it: plans, rows, streams, commits, procedures, SQL
statements.

In: requests of DriverChannel.java, each a kind and bytes. Out: the bytes that the kind's function returns.
A client can send a request only after it has proved that it knows the secret of the application.
"""
