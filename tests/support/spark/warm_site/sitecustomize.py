"""Every Python process that has this directory in PYTHONPATH imports this module when it starts: all processes that the tests'
JVM starts. Spark's daemons of workers are warm then (warm_daemon.py); other processes do nothing.
"""

import sys

if sys.orig_argv[1:-1] == ["-m", "pyspark.daemon"]:
    from tests.support.spark.warm_daemon import warm_up

    warm_up(sys.orig_argv[-1])
