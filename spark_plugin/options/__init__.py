"""Options and settings, from Spark's text to values."""
