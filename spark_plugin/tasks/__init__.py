"""Spark's tasks, for reads, writes and commands alike.

In: values and steps of the driver. Out: answers of tasks, read without executing anything that they contain.
"""
