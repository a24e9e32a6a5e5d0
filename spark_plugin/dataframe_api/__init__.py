"""Wrappers of methods of Spark's readers and writers, for the format `pydelta`.

In: a call of a user, such as `save`. Out: the same call with more options and columns, or a Delta command.
"""
