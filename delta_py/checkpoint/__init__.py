"""Checkpoints, and what may be deleted from a log after one.

In: the state of a version. Out: checkpoint files, and a shorter `_delta_log`.
"""
