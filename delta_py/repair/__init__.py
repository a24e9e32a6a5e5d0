"""Checks of a table, and repairs of faults that are certain.

In: a table that may be damaged. Out: its faults, and commits or log files that repair it.
"""
