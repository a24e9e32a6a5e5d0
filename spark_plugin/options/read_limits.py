"""The sizes that decide how a scan is read, each with the measurement that justifies it.

spark_plugin/source/read_plan.py decides by them. The rule gets those that it needs before it plans (`for_the_rule`). "Not
measured" means that a number was chosen and no measurement is known. Limits on what a table's statistics say about groups are in
delta_py/scan/group_estimate.py and delta_py/scan/log_answers.py, because they are useful without Spark too.
"""

from __future__ import annotations

_MIB = 1 << 20

# ---------------------------------------------------------------- limits of queries

MOST_LIMITED_ROWS = 65_536
"""A limit of at most this many rows is passed to the source, which reads them in one task. One task would take too long for more.
Not measured."""

# ---------------------------------------------------------------- rows that the driver's own Python reads

DRIVER_FILES = 4
"""The driver reads them one after the other, tasks read in parallel. For a remote store it is DRIVER_REMOTE_FILES. Not
measured by itself; a point lookup in a table of 16 files took 140 ms, of which the job was 119, and takes 62 ms without one
(Spark 4.3)."""

DRIVER_REMOTE_FILES = 1

DRIVER_ROWS = 4096
"""Their values go through Py4J. More rows are worth a job, which passes them on as they come. Not measured."""

DRIVER_BYTES = _MIB
"""The bytes of these rows. Not measured."""

DRIVER_DECODED_ROWS, DRIVER_DECODED_VALUES = 1 << 18, 1 << 22
DRIVER_ENCODED_BYTES, DRIVER_DECODED_BYTES, DRIVER_VECTOR_BYTES = 32 * _MIB, 64 * _MIB, _MIB
"""How much is decoded for these rows at most: rows, values, bytes in the file, bytes in memory, and bytes of deletion vectors.
It is two row groups of the size that pydelta writes, of up to sixteen columns. pyarrow decodes a row group in 18 ms; a scan that
turns out to be larger has lost 4 ms. A list of zeros made 1.4 GB of 4 KB, so values and decoded bytes count too."""

DRIVER_RESULT_BYTES = 4 * _MIB
"""The bytes that Spark's expressions make of these rows on the driver. A projection once ran out of memory where a task
passed."""

DRIVER_COMPUTE_MS = 500
"""The time for Spark's expressions on these rows. After it a job computes them, which can be cancelled. The first query loads
Java's classes for texts in this time. Not measured."""

# ---------------------------------------------------------------- partial rows

PARTIAL_BYTES = 128 * _MIB
"""The bytes of files. The second planning and the wait for workers took 0.1 s, which the aggregation of 60 MB saves; with 25 MB a
query of 0.13 s took 0.24 s. One column of 60 MB took 0.6 s instead of 0.5 s."""

PARTIAL_WORK = 256 * _MIB
"""Bytes of files times the number of values to add up per row. Nine columns of 60 MB took 0.8 s instead of 3.2 s."""

MOST_GROUP_COLUMNS = 8
"""Not measured."""

# ---------------------------------------------------------------- one task

ONE_TASK_BYTES = 4 * _MIB
"""The bytes of files: as many as Spark counts for opening a file. One stage less took 0.05 to 0.2 s off queries of 0.2 to 0.4
s."""

ONE_TASK_ROWS = 1_000_000
"""Few bytes may contain millions of equal values, which are worth the tasks after a shuffle: sorted columns have 20 million rows
in 240 KB. The number itself is not measured; 100,000 rows were (group by 0.41 s and not 0.53 s)."""

# ---------------------------------------------------------------- Spark's own Parquet reader

PARQUET_GROUP_ROWS = 1 << 18
"""In row groups of this many rows and more Spark's reader is as fast or faster for columns of all types. Whole rows of
8,000,000, Python and Spark's reader: groups of 131,072 rows 1.41 s and 1.63 s, of 262,144 1.32 s and 1.23 s, of 2,000,000 1.11
s and 0.96 s. In groups of 131,072 rows, columns of nearly as many values are dictionaries, which Spark's reader reads slowly."""

PARQUET_FOOTER_BYTES = _MIB
"""A larger footer is not read for this check. Not measured."""

PARQUET_SMALL_BYTES = 48 * _MIB
"""For so few bytes it does not matter which reader decodes faster, but tasks in Python have to wait for a worker, which the first
tasks of a session start: a lookup in a file of 33 MB took 4.1 s of CPU for them, and either reader 0.2 to 0.3 s once they ran.
From 67 MB of numbers on Python is faster."""

PARQUET_RULED_OUT = 0.5
"""If bounds have ruled out this share of a table, its rows are likely sorted so that the page index of a file rules out most of
the file; Python, which does not use such an index, decodes row groups. Not measured by itself."""

PARQUET_NARROWED_FILES, PARQUET_NARROWED_BYTES = 8, 256 * _MIB
"""If there are more files, most are likely read whole. On four sorted files of one row group each a lookup took 1.27x and a range
of 1 % 1.56x of delta-spark's time in Python, 0.54x and 0.58x with page indexes. The bounds themselves are not measured."""

PARQUET_LEAST_SHARE = 0.5
"""The share of bytes in simple files if some column is nested: Python's rows of other files are converted to columns again. Not
measured."""

PARQUET_BATCH_BYTES = 32 * _MIB
"""The bytes of the values of one batch. Spark holds one batch per task in Java's heap, however large the values are. Python cuts
its batches. A file with larger values is left to Python when it is read (FileSchema.java). Not measured."""

# ---------------------------------------------------------------- tasks of small tables

PYTHON_TASKS_PER_CORE = 2
"""Each task in Python costs some 40 ms of CPU whatever it reads. A second task on each core balances unequal tasks."""

PARQUET_TASKS_PER_CORE = 1
"""For Spark's own Parquet reader, as Spark plans its tasks: joins of small tables took 5 to 8 % longer with two."""

# ---------------------------------------------------------------- what a plan needs to look up

SMALL_LOG_BYTES = _MIB
"""For a log that is no larger, the cost of looking up how many rows the files have is not noticeable. Not measured."""


def for_the_rule() -> tuple[int, int]:
    """Return the sizes that the rule needs before it calls the source: the row count of a limit, and the number of columns by
    which partial rows are grouped."""
    return MOST_LIMITED_ROWS, MOST_GROUP_COLUMNS
