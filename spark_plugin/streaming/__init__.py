"""Streams: the source and the sink."""
