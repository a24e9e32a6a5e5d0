"""Rows to files, on executors.

In: `WriteState` and Arrow batches. Out: Parquet files and deletion vectors in the store, and `WrittenFiles` that lists them.
"""
