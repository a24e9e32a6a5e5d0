"""MERGE, and overwrites of matching rows, as Spark jobs.

In: a source, a condition and clauses. Out: the rows that change, for the two jobs of `dml`.
"""
