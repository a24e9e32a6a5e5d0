"""A table as the source of a stream.

In: the options of a stream, and its last offset. Out: the next offset, and the files of the batch between the two.
"""
