"""The implementation of the classes of delta.tables."""
