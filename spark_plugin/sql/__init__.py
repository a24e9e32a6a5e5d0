"""SQL statements on tables of ours that Spark's own `sql` cannot carry out."""
