"""Streams: the source and the sink.

In: options and offsets from Spark. Out: partitions for a batch, and one commit for each batch that is written.
"""
