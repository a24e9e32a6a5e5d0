"""Statistics of data files.

In: Arrow batches to write, Parquet footers, statistics as JSON. Out: counts and bounds as columns. No I/O, no clock.
"""
