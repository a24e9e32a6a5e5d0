"""What stands behind the classes of delta.tables."""
