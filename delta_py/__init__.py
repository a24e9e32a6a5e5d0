"""delta_py: the Delta Lake protocol as a library on pyarrow. No Spark in it."""
