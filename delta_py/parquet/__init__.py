"""Decoding of data files, on executors.

In: `ScanState` and the files of a task. Out: Arrow batches of the table's columns, without deleted rows.
"""
