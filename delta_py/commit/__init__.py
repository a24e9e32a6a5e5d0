"""The transaction: from prepared actions to a version of the table.

In: a snapshot, the rows that were read, and actions. Out: a commit file in `_delta_log`, or an error that names the conflict.
"""
