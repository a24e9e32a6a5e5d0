"""Functions of expressions, as Spark has them."""
