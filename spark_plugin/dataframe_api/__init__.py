"""What wraps methods of Spark's readers and writers."""
