"""Functions of expressions, as in Spark."""
