"""A table's files for other libraries: as a dataset and a file system of pyarrow, as a list with typed values.

In: a snapshot, filters of partitions as deltalake takes them. Out: objects of pyarrow.
"""
