"""All access to Spark that is not its public API, and wrappers of its methods.

In: a session, a DataFrame or a Column. Out: what its JVM or its Connect client knows about it.
"""
