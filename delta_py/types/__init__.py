"""Schemas, types and values of a table.

In: schema JSON, Arrow types and Python values. Out: `StructType` and the Arrow values that it describes. No I/O, no clock.
"""
