"""The native reader: executors read simple data files by Spark's own vectorized Parquet reader, without Python.

Python plans as ever, and says of each task whether its files are simple (source/native_files.py): columns whose types Spark
reads alike, no limit, no metadata. Such a task carries its files in a form that Java reads, with the deletion vectors by which
rows are left out here. It stays a task that Python can read: a file that stores other types than the table's, or that Spark
cannot read to its end, is read in Python from there on, with those behind it.

The session's setting `spark.pydelta.nativeReader.enabled` has it read all simple files, none, or, which is usual, those of scans
for which it is likely quicker. It is read when a query is planned and may change at any time.

The .java files here are a compile unit of their own: the first query that wants them has them compiled by the compiler that Spark
ships (Janino), put into a jar and sent to the executors. If that fails, or the preparation of a scan does, Python reads; the
reason is logged once and told by `pruning.status(spark).native_error`.
"""
