"""The rows that commits change, and the schema changes between commits.

In: the commits of a range. Out: a scan of change files, added files and removed files, with the kind of each change.
"""
