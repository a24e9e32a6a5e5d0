"""SQL statements on Delta tables that Spark's own `sql` cannot run.

In: the text of a statement. Out: its clauses and its table, and whether the table is ours.
"""
