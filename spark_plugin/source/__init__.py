"""The data source: the code that Spark calls, in each of the processes where Spark calls it.

In: options, a schema and a request. Out: partitions and Arrow batches of reads, files and commits of writes.
"""
