"""Commands that create, build and maintain secondary indexes.

In: a table and indexed columns. Out: index files, and the domain that names them.
"""
