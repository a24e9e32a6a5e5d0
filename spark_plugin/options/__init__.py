"""Options and settings, converted from Spark's text to values."""
