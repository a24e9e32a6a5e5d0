"""Operations of as_deltalake's DeltaTable: alter, optimize, merge, the change feed, files of the caller.

In: deltalake's arguments. Out: deltalake's results, and a table at its new version.
"""
