"""DELETE, UPDATE and MERGE as Spark jobs.

In: a condition and assignments. Out: two jobs, which write new rows and delete old ones, and one commit.
"""
