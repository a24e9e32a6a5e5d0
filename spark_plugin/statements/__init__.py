"""Statements of `spark.sql` about rows, and Delta's own statements.

In: a parsed statement, or its text over Spark Connect. Out: the DataFrame that `spark.sql` returns.
"""
