"""Expressions as SQL text: Spark's grammar for sqlglot, literals, names of types, and the texts of rules.

In: SQL text, or a tree. Out: a tree without types (`parse.py` resolves it), or SQL text that Spark may compute.
"""
