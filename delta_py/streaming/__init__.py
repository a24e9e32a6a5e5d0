"""A table as the source of a stream."""
