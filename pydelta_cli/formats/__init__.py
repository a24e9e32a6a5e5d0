"""The forms of rows and values on the command line: CSV, JSON lines, Parquet, Arrow, and tables of text.

In: files, standard input, Arrow batches. Out: Arrow batches with a table's types, and text that a terminal shows safely.
"""
