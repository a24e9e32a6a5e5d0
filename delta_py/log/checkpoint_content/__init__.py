"""The content of checkpoints: actions and files, of every kind of checkpoint.

In: the files of a checkpoint. Out: Arrow batches of files, and other actions; for a new checkpoint, the rows to write.
"""
