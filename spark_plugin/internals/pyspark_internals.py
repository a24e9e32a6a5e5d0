"""The private parts of pyspark in Python: readers and writers, the text of SQL, what its workers do, and its errors.

It covers classic sessions and clients of Spark Connect. The parts in the JVM are in `spark_internals.py`.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.sql.types import DataType, _parse_datatype_json_string

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.errors import PySparkException

_INT = struct.Struct("!i")


# ---------------------------------------------------------------- readers and writers, classic and of Spark Connect


def readwriter_modules(*, connect: bool) -> tuple[ModuleType, ModuleType]:
    """Return the modules of the readers and writers of batches, and of streams."""
    if connect:
        from pyspark.sql.connect import readwriter as client_batches
        from pyspark.sql.connect.streaming import readwriter as client_streams

        return client_batches, client_streams
    from pyspark.sql import readwriter as batches
    from pyspark.sql.streaming import readwriter as streams

    return batches, streams


def session_of(owner: Any) -> Any:
    """Return the session of a reader or writer, of batches or streams."""
    sessions = (getattr(owner, name, None) for name in ("_spark", "_session", "_client"))
    return next(session for session in sessions if session is not None)


def frame_of(writer: Any) -> Any:
    """Return the DataFrame of a classic session's writer."""
    return writer._df


def callback_of(writer: Any) -> Any:
    """Return the function to which a batch writer of Spark Connect passes information about its execution; None for other
    writers. A new writer for the same frame needs it (new_writer of a SessionAdapter)."""
    return getattr(writer, "_callback", None)


# ---------------------------------------------------------------- sessions and their SQL, classic and of Spark Connect


def session_class(*, connect: bool) -> type[Any]:
    """Return the class whose `sql` users call."""
    if connect:
        from pyspark.sql.connect.session import SparkSession as ClientSession

        return ClientSession
    from pyspark.sql import SparkSession

    return SparkSession


@contextmanager
def formatted_sql(spark: Any, text: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text with keyword arguments of a classic session's `sql` inserted as `sql` does it. DataFrames are views inside
    the block."""
    from pyspark.sql.sql_formatter import SQLStringFormatter

    formatter = SQLStringFormatter(spark)
    try:
        yield formatter.format(text, **arguments)
    finally:
        formatter.clear()


# ---------------------------------------------------------------- what Spark's Python workers do on the driver


def data_type_of_json(text: str) -> DataType:
    """Parse a data type as the JVM writes it to workers."""
    return _parse_datatype_json_string(text)


def plan_read_like_worker(source: Any, reader: Any, schema: Any, *, max_arrow_batch_size: int, binary_as_bytes: bool) -> bytes:
    """Return what the worker that plans a read of a DataSource writes to the JVM: the read function, and the partitions; for a
    stream's reader no partitions."""
    from pyspark.sql.worker.plan_data_source_read import write_read_func_and_partitions  # few processes need it

    output = io.BytesIO()
    write_read_func_and_partitions(
        output,
        reader=reader,
        data_source=source,
        schema=schema,
        max_arrow_batch_size=max_arrow_batch_size,
        binary_as_bytes=binary_as_bytes,
    )
    return output.getvalue()


def plan_write_like_worker(writer: Any, task_result_type: Any) -> bytes:
    """Return what the worker that plans a write of a DataSource writes to the JVM: the function of the tasks, and the writer.

    writer: a DataSourceArrowWriter. task_result_type: the columns that a task returns, a StructType with one field.
    """
    from pyspark.serializers import CPickleSerializer

    serializer: Any = CPickleSerializer()
    (column,) = task_result_type.names

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        yield pa.record_batch([pa.array([serializer.dumps(writer.write(batches))])], names=[column])

    write.__module__ = "pyspark.sql.worker.write_into_data_source"  # Spark's worker recognizes such a function by this name
    # Each of the two parts is its length in four bytes, and a pickle.
    return b"".join(_INT.pack(len(part)) + part for part in map(serializer.dumps, ((write, task_result_type), writer)))


def encode_partitions_like_worker(partitions: Sequence[Any]) -> bytes:
    """Return what a stream's process writes to the JVM for the partitions of a batch: their number, and the pickle of each after
    its length; numbers have four bytes."""
    from pyspark.serializers import CPickleSerializer

    serializer: Any = CPickleSerializer()
    pickles = [serializer.dumps(partition) for partition in partitions]
    return _INT.pack(len(pickles)) + b"".join(_INT.pack(len(pickled)) + pickled for pickled in pickles)


# ---------------------------------------------------------------- errors


def reason_of(error: Exception) -> str:
    """Return the error as text with its class; for an error of Py4J the Java exception that caused it."""
    java_exception = getattr(error, "java_exception", None)
    return f"{type(error).__name__}: {error}" if java_exception is None else str(java_exception.toString())


def message_without_stack(error: PySparkException) -> str:
    """Return the message of a Spark exception. If the JVM threw it, str() would fetch and add the stack trace."""
    description = getattr(error, "_desc", None)
    return description if isinstance(description, str) else str(error)


def class_shown_by_pyspark(cls: type[PySparkException]) -> type[PySparkException]:
    """Return the class itself, or its base class if pyspark would show the JVM's error in place of it."""
    from pyspark.errors.exceptions.captured import CapturedException, UnknownException

    return CapturedException if issubclass(cls, UnknownException) else cls


def translate_exceptions(translate: Callable[[PySparkException], PySparkException], *, connect: bool) -> None:
    """Make pyspark pass the exceptions of the JVM (or of the Connect server) through `translate`. Idempotent."""
    from pyspark.errors.exceptions import captured

    _translate_in(captured, translate)
    if connect:
        from pyspark.errors.exceptions import connect as connect_exceptions
        from pyspark.sql.connect.client import core

        _translate_in(connect_exceptions, translate)
        _translate_in(core, translate)


def _translate_in(module: Any, translate: Callable[[PySparkException], PySparkException]) -> None:
    """Make the module's convert_exception, which pyspark calls for each error, pass its result through `translate`; once."""
    convert: Callable[..., PySparkException] = module.convert_exception
    if getattr(convert, "_translates", False):
        return

    @wraps(convert)
    def convert_and_translate(*args: Any, **kwargs: Any) -> PySparkException:
        return translate(convert(*args, **kwargs))

    convert_and_translate._translates = True  # type: ignore[attr-defined]
    module.convert_exception = convert_and_translate


# ---------------------------------------------------------------- jobs that run


def job_tracker(spark: Any) -> Any:
    """Return the StatusTracker of a classic session's application."""
    return spark.sparkContext.statusTracker()


@contextmanager
def without_console_bar(spark: Any) -> Iterator[None]:
    """Hide the progress bar that Spark draws in the terminal, inside the block, if the session has one. The bar is drawn into a
    stream that discards everything."""
    context = spark.sparkContext
    option = context._jsc.sc().progressBar()
    stream_field = _stream_field_of(option.get()) if option.isDefined() else None
    if stream_field is None:
        yield
        return
    bar, io_package = option.get(), context._jvm.java.io
    bar.finishAll()
    stream = stream_field.get(bar)
    stream_field.set(bar, io_package.PrintStream(io_package.OutputStream.nullOutputStream()))
    try:
        yield
    finally:
        bar.finishAll()
        stream_field.set(bar, stream)


def _stream_field_of(bar: Any) -> Any | None:
    """Return the field with the stream to which Spark's bar is drawn; None in a build of Spark that has no such field."""
    try:
        field = bar.getClass().getDeclaredField("console")
    except Py4JError:
        return None
    field.setAccessible(True)
    return field
