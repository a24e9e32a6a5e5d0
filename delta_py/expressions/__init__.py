"""Predicates and expressions on Arrow data, as Spark evaluates them.

In: SQL text, or an expression tree, and Arrow columns. Out: Arrow values, or the files that may have matching rows.
"""
