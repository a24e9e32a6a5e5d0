"""CREATE, DROP, ALTER and SHOW statements of `spark.sql`.

In: a statement that Spark's own parser has parsed. Out: a changed catalog or table, and the DataFrame that `spark.sql` returns.
"""
