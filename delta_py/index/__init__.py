"""Secondary indexes: which data files hold a value of a column.

In: segments of an index, and values. Out: the files to read for these values. Files without an index are always read.
"""
