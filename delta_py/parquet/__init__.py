"""Decoding of data files, on executors."""
