"""The formats of the Delta protocol: actions, features, paths, deletion vectors, column mapping.

In: JSON and bytes of a log. Out: checked frozen dataclasses, and JSON and bytes for new files. No I/O, no clock.
"""
