"""Wrappers of methods of Spark's readers and writers."""
