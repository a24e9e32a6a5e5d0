"""Files on disks and in object stores, and the cache directory.

In: a table's root, and paths below it. Out: bytes, listings, and files that are created only if the name is free.
"""
