"""Checkpoints, and the cleanup of the log files that a checkpoint replaces.

In: the state of a version. Out: checkpoint files, and a shorter `_delta_log`.
"""
