"""VACUUM: files that no retained version references.

In: the log, a listing and a retention time. Out: the names of these files, and their deletion or quarantine.
"""
