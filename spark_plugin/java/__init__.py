"""The Java part: its sources, their build, and the choice of a session's jar.

In: the sources, and the jars of a pyspark. Out: a jar for each minor version of Spark, in spark_plugin/jars.
"""
