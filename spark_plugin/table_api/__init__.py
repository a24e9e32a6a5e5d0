"""The implementation of the classes of delta.tables.

In: the calls of a user. Out: arguments that are checked, and the commands and jobs that run them.
"""
