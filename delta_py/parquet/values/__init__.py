"""The values of a Parquet file, as values of the table's columns.

In: Arrow arrays as pyarrow decodes them. Out: arrays of the columns' types: wider types, other units and calendars, variants.
"""
