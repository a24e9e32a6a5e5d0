"""The Java part: one source tree, from which a jar is built for each minor version of Spark.

    spark_plugin/java/<package>/Name.java               package pydelta.<package>, for all versions of Spark
    spark_plugin/java/spark_4_1/<package>/Name.java     the same for Spark 4.1 alone; it replaces a common source of the same path

In: the sources, and the jars of a pyspark (build.py). Out: files such as spark_plugin/jars/pydelta-spark-4.3.jar, which wheels
contain, and the jar for a session (jars.py). How to build: python -m spark_plugin.java.build.
"""
