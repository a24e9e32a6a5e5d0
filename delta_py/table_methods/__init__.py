"""Groups of DeltaTable's methods.

In: a snapshot, and arguments as a caller gives them. Out: results of the layers below, as Arrow tables, numbers and text.
"""
