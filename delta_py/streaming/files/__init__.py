"""The files that a stream reads, numbered in the order in which the stream reads them.

In: a snapshot, or the commits after it. Out: numbered files, from which the stream takes its batches.
"""
