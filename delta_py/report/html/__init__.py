"""The report of a table as a page.

In: the facts of a table. Out: one HTML document with charts, which fetches nothing.
"""
