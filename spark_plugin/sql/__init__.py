"""SQL statements on Delta tables that Spark's own `sql` cannot run."""
