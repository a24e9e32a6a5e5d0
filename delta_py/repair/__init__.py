"""Checks of a table, and repairs of what is certain.

In: a table that may be damaged. Out: what is wrong, and commits or log files that repair it.
"""
