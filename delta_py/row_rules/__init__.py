"""The rules of a table for its rows: types, NOT NULL, CHECK, generated columns, defaults, identity columns.

In: Arrow batches. Out: Arrow batches that the table may store, or an error that names the rule and the values.
"""
