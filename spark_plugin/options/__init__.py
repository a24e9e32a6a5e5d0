"""Options and settings, converted from Spark's text to values.

In: the options of a read, write or stream, and the session's settings. Out: checked values, or an error that names the option.
"""
