"""Planning of scans, on the driver.

In: a snapshot, columns and a predicate. Out: `ScanState` and the files that may have matching rows, or the log's answer.
"""
