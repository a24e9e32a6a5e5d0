"""Every Python process imports this module as it starts where this directory is in PYTHONPATH: all that the tests' JVM starts.
Spark's daemons of workers are warm then (warm_daemon.py); others do nothing."""

import sys

if sys.orig_argv[1:-1] == ["-m", "pyspark.daemon"]:
    from tests.support.spark.warm_daemon import warm_up

    warm_up(sys.orig_argv[-1])
