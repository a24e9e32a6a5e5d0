"""The functions of expressions, by Spark's names.

In: the Arrow values of the arguments. Out: the Arrow values that Spark's function of this name would return, or its error.
"""
