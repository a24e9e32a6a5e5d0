"""The maintenance of tables as Spark jobs.

In: a command such as OPTIMIZE or VACUUM. Out: its work in tasks, a commit, and a DataFrame with its metrics.
"""
