"""Statistics of data files.

In: Arrow batches that are written, Parquet footers, statistics as JSON. Out: counts and bounds as columns. No I/O, no clock.
"""
