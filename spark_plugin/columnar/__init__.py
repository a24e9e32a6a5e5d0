"""The columnar reader: Spark gets the batches of a Python source as columns, not row by row.

Spark's own reader for Python sources makes a row of every row of an Arrow batch before the query sees it. This one copies
each column of a batch out of Arrow's memory at once and hands Spark a ColumnarBatch, which whole-stage code reads in place.

The session's setting `spark.pydelta.columnarReader.enabled` switches it off when it is false. It is read when a query is planned
and may change at any time. Off, or where the reader cannot be had or does not fit, Spark's own reader is used: the rows are the
same.

The pruning rule (spark_plugin/pruning) puts it into the scans that it prunes. The .java files here are a compile unit of
their own: the first query that wants them has them compiled by the compiler that Spark ships (Janino), put into a jar and
sent to the executors. If that fails the reason is logged once and told by `pruning.status(spark).columnar_error`.

Used for columns of BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, DATE, TIMESTAMP, TIMESTAMP_NTZ, BINARY and
STRING without a collation, or none at all (a count). A scan with a column of another type goes to Spark's own reader as a whole,
and so do sessions that keep artifacts to themselves, those with Arrow's large types, and on Spark 4.2 queries with a Python UDF
unless `spark.sql.execution.arrow.pythonUDF.columnarInput.enabled`, which is on by default, is false: there they would never end.

Memory: the columns are arrays on Java's heap that belong to one batch. Nothing that Spark may keep points into Arrow's
memory, which the stream from Python uses again for the next batch and frees when the task ends, however it ends.
"""
