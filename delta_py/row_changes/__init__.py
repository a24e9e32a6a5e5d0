"""Writes, and DELETE, UPDATE and MERGE without Spark.

In: rows, conditions and assignments. Out: files that were added and removed, and their commit.
"""
