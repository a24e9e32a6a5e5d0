"""`_delta_log`: its files, and the state of a version that they describe.

In: a store with a log. Out: protocol, metadata and live files of a version, the history, and new log files.
"""
