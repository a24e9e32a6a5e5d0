"""The arrangement of rows in files: orders by several columns at once, and how well they let readers skip files.

In: the values or the statistics of columns. Out: the order of rows, or the share of files that a query reads.
"""
