"""How Spark's readers and writers behave differently when the format is pydelta, or `delta` where that is pydelta's.

Spark's analyzer accepts only `append` and `overwrite` for a Python data source: it refuses its own default mode, `ignore`,
`partitionBy` and `clusterBy` before it calls Python. It passes neither a catalog table's path nor the session's settings to a
source. So `install` wraps some methods of DataFrameReader, DataFrameWriter, DataFrameWriterV2, DataStreamReader and
DataStreamWriter, classic and Connect.
The wrappers record each call and then call Spark's own method. Only the methods that end a read or a write of our format behave
differently: `load` adds the session's settings and, in a batch read, the hidden column `_metadata`; `save` and similar methods
become a `Save` (batch_save.py), `start` and `toTable` a `StreamSave` (streaming_start.py). Other formats see no difference.
A function `_wrap_<method>` takes Spark's own method (`original`) and returns the method that replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql.types import StructType

from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.types.names import split_name, unquoted
from spark_plugin.data_source import FORMAT
from spark_plugin.dataframe_api import catalog, named_tables
from spark_plugin.dataframe_api.batch_save import Save
from spark_plugin.dataframe_api.streaming_start import StreamSave
from spark_plugin.driver_planning.loads import load as driver_load
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.internals.pyspark_internals import callback_of, readwriter_modules, session_of
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.wrapping import Method, wrap
from spark_plugin.internals.wrapping import original as original_method
from spark_plugin.options.common import CHANGE_FEED, SESSION, STREAM, USER_SCHEMA
from spark_plugin.options.private import admitted, is_private
from spark_plugin.options.settings import active, check_condition_text, read_settings
from spark_plugin.options.streaming_options import tracks_schema
from spark_plugin.options.write_options import save_mode
from spark_plugin.pruning import with_columns_of_batches, with_metadata_column
from spark_plugin.session_source import nonce_of, private
from spark_plugin.sql_catalog.delta_names import DELTA, delta_is_ours

_CALLS = "_pydelta_calls"  # the attribute of a reader or writer that contains its _Calls
_LIMITED_TEXT = re.compile(r'(ype":)"(?:var)?char\(\d+\)"')  # as a type, elementType, keyType or valueType in JSON


@dataclass(slots=True)
class _Calls:
    """The calls on one reader or writer, in any order; None where the method was not called. options: by lower-case name, as
    (name in the user's spelling, value). schema: a StructType or SQL. table, properties: of writeTo. partition_by: names; with
    writeTo also Columns. bucketed: bucketBy was called."""

    format: str | None = None
    schema: Any = None
    table: str | None = None
    mode: str | None = None
    partition_by: list[Any] | None = None
    cluster_by: list[str] | None = None
    bucketed: bool = False
    options: dict[str, tuple[str, Any]] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)

    def add_option(self, key: str, value: Any) -> None:
        """Record an option. Spark ignores an option with the value None."""
        if value is not None:
            self.options[key.lower()] = (key, value)


def install(*, connect: bool, in_clones: Callable[[Any, Any], Any]) -> None:
    """Wrap the methods, once in a process. connect: whether the session is one of Spark Connect, whose classes are wrapped too.
    in_clones: takes a session and the user's function of foreachBatch, and returns the function that Spark calls."""
    for over_connect in (False, True) if connect else (False,):
        batches, streams = readwriter_modules(connect=over_connect)
        _install_reader(batches.DataFrameReader)
        _install_writer(batches.DataFrameWriter)
        _install_table_writer(batches.DataFrameWriterV2)
        _install_stream_reader(streams.DataStreamReader)
        _install_stream_writer(streams.DataStreamWriter, in_clones)


def _install_reader(cls: type[Any]) -> None:
    wrap(cls, "format", _recording(lambda calls, source: setattr(calls, "format", source)))
    wrap(cls, "schema", _recording(lambda calls, schema: setattr(calls, "schema", schema)))
    wrap(cls, "option", _recording(_Calls.add_option))
    wrap(cls, "options", _recording(_record_options))
    wrap(cls, "load", partial(_wrap_load, is_stream=False))
    wrap(cls, "table", _wrap_table)


def _install_writer(cls: type[Any]) -> None:
    wrap(cls, "format", _recording(lambda calls, source: setattr(calls, "format", source)))
    wrap(cls, "mode", _recording(_record_mode))
    wrap(cls, "partitionBy", _recording(lambda calls, *cols: setattr(calls, "partition_by", _names(cols))))
    wrap(cls, "clusterBy", _recording(lambda calls, *cols: setattr(calls, "cluster_by", _names(cols))))
    wrap(cls, "bucketBy", _recording(lambda calls, *_, **__: setattr(calls, "bucketed", True)))
    wrap(cls, "option", _recording(_Calls.add_option))
    wrap(cls, "options", _recording(_record_options))
    wrap(cls, "save", _wrap_save)
    wrap(cls, "saveAsTable", _wrap_save_as_table)
    wrap(cls, "insertInto", _wrap_insert_into)


def _recording(record: Callable[..., None]) -> Callable[[Method], Method]:
    """Return a function that wraps a method: it calls Spark's own method, and if that raises no error it records the call.
    record: takes the _Calls of the reader or writer and the arguments of the call."""

    def make(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            record(_calls(self), *args, **kwargs)
            return result

        return method

    return make


def _calls(owner: Any) -> _Calls:
    """Return the record of the calls on a reader or writer, which is empty before the first call."""
    calls = owner.__dict__.get(_CALLS)
    if calls is None:
        calls = owner.__dict__[_CALLS] = _Calls()
    assert isinstance(calls, _Calls)
    return calls


def _record_mode(calls: _Calls, saveMode: str | None) -> None:
    if saveMode is not None:
        calls.mode = saveMode


def _record_options(calls: _Calls, **options: Any) -> None:
    for key, value in options.items():
        calls.add_option(key, value)


def _names(cols: tuple[Any, ...]) -> list[str]:
    """Return the names that a call has as its arguments. Spark accepts names one by one, or as one list."""
    names: Iterable[Any] = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
    return [str(name) for name in names]


def _is_ours(spark: Any, name: str | None) -> bool:
    return _our_format(spark, name) is not None


def _our_format(spark: Any, name: str | None) -> str | None:
    """Return the format in lower case; None if it is not pydelta's. name: as the caller passed it; None for Spark's default."""
    source = spark.conf.get("spark.sql.sources.default") if name is None else name
    format = source.lower() if isinstance(source, str) else None
    return format if format == FORMAT or (format == DELTA and delta_is_ours(spark)) else None


# ---------------------------------------------------------------- load


def _wrap_load(original: Method, *, is_stream: bool) -> Method:
    """Return a `load` that passes the session's settings, and lets the driver's own Python plan batch reads if it can."""

    def load(self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> Any:
        spark = session_of(self)
        if not _is_ours(spark, format or _calls(self).format):
            return original(self, path, format, schema, **options)
        is_driver = adapter_of(spark).is_driver
        calls = _calls(self)
        # Spark gets our own name of the format, because the user may have named it differently, such as delta.
        new_format = None if format is None and calls.format == FORMAT else FORMAT
        all_options = {**{name: value for name, value in calls.options.values()}, **options}
        with as_spark_raises():
            admitted(all_options, nonce_of(spark))
            check_condition_text(spark, "filter", _option(all_options, "filter"))
        private_options = {}
        user_schema = calls.schema if schema is None else schema
        if is_stream:
            private_options[STREAM] = "true"
        elif user_schema is not None and is_driver:
            private_options[USER_SCHEMA] = _schema_text(user_schema)

        def load_by_worker() -> Any:
            """Load as Spark does: one of its Python workers looks at the table."""
            settings = read_settings(spark, _path_of(path, all_options), tracks_schema=is_stream and tracks_schema(all_options))
            with active(spark):
                signed_options = private(spark, {SESSION: settings, **private_options})
                frame = original(self, path, new_format, schema, **{**options, **signed_options})
            calls.options = {key: pair for key, pair in calls.options.items() if not is_private(key)}  # the reader may load again
            return with_columns_of_batches(frame) if is_stream else with_metadata_column(frame)

        if is_stream or not is_driver:
            return load_by_worker()
        reader = partial(_apply_load_arguments, self, new_format, schema, options)
        return driver_load(spark, reader, path, private_options, load_by_worker)

    return load


def _wrap_table(original: Method) -> Method:
    """Return a `table` that reads a change feed from the table's path: the feed has its own columns, which Spark does not
    expect for a name."""

    def table(self: Any, tableName: str) -> Any:
        all_options = {name: value for name, value in _calls(self).options.values()}
        is_feed = any(str(_option(all_options, name.lower())).lower() == "true" for name in CHANGE_FEED)
        path = catalog.path_of_ours(session_of(self), tableName) if is_feed else None
        if path is None:
            return original(self, tableName)
        frame = session_of(self).read.format(FORMAT).options(**all_options).load(path)
        return frame.alias(split_name(tableName)[-1])

    return table


def _apply_load_arguments(reader: Any, format: str | None, schema: Any, options: dict[str, Any]) -> Any:
    """Pass the arguments of `load` to the DataFrameReader, and return it."""
    if format is not None:
        reader.format(format)
    if schema is not None:
        reader.schema(schema)
    return reader.options(**options) if options else reader


def _path_of(path: Any, options: Mapping[str, Any]) -> str | None:
    """Return the path of a load, from its argument or an option."""
    path_or_option = path if path is not None else _option(options, "path")
    return path_or_option if isinstance(path_or_option, str) else None


def _option(options: Mapping[str, Any], lowercase_name: str) -> Any:
    return next((value for name, value in options.items() if name.lower() == lowercase_name), None)


def _schema_text(schema: Any) -> str:
    """Return the schema as JSON. schema: a StructType or SQL. CHAR and VARCHAR become STRING, as in Spark."""
    text = (StructType.fromDDL(schema) if isinstance(schema, str) else schema).json()
    return _LIMITED_TEXT.sub(r'\1"string"', text)


# ---------------------------------------------------------------- save, saveAsTable, insertInto


def _frame_of(writer: Any) -> Any:
    """Return the DataFrame of a writer of batches or streams."""
    return adapter_of(session_of(writer)).frame_of(writer)


def _wrap_save(original: Method) -> Method:
    def save(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        if not _is_ours(session_of(self), format or _calls(self).format):
            original(self, path, format, mode, partitionBy, **options)
            return
        _apply_save(self, mode, partitionBy, options)
        with as_spark_raises():
            _as_save(self).to(path)

    return save


def _wrap_save_as_table(original: Method) -> Method:
    def saveAsTable(
        self: Any, name: str, format: str | None = None, mode: str | None = None, partitionBy: Any = None, **options: Any
    ) -> None:
        source = format or _calls(self).format
        spark, appends = session_of(self), (mode or _calls(self).mode or "").lower() == "append"
        # An append without a format is for the table of this name, whatever Spark's default format is.
        if not _is_ours(spark, source) and not (source is None and appends and catalog.is_ours(spark, name)):
            original(self, name, format, mode, partitionBy, **options)
            return
        _apply_save(self, mode, partitionBy, options)
        with as_spark_raises():
            named_tables.save_as_table(_as_save(self, _our_format(spark, source)), name)

    return saveAsTable


def _wrap_insert_into(original: Method) -> Method:
    def insertInto(self: Any, tableName: str, overwrite: bool | None = None) -> None:
        if not catalog.is_ours(session_of(self), tableName):
            original(self, tableName, overwrite)
            return
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        with as_spark_raises():
            named_tables.insert_into(_as_save(self), tableName)

    return insertInto


def _apply_save(writer: Any, mode: str | None, partition_by: Any, options: dict[str, Any]) -> None:
    """Call the writer's methods for the arguments of `save` or `saveAsTable`, which records them."""
    writer.mode(mode).options(**options)
    if partition_by is not None:
        writer.partitionBy(partition_by)


def _as_save(writer: Any, provider: str | None = None) -> Save:
    """Return the calls on a DataFrameWriter as a Save. provider: of a name that the write makes."""
    calls = _calls(writer)
    if calls.bucketed:
        raise UnsupportedOperationError("Delta tables have no buckets. Leave bucketBy and sortBy out.", option="bucketBy")
    mode = save_mode(calls.mode or "error")
    save = Save(_frame_of(writer), mode, calls.options, calls.partition_by, calls.cluster_by, callback_of(writer))
    return replace(save, provider=provider).checked()


# ---------------------------------------------------------------- writeTo

_VERBS = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")


def _install_table_writer(cls: type[Any]) -> None:
    connect = cls.__module__.startswith("pyspark.sql.connect.")
    wrap(cls, "__init__", _recording(lambda calls, *args, **kwargs: _record_table(calls, args, kwargs, 2 if connect else 1)))
    wrap(cls, "using", _recording(lambda calls, provider: setattr(calls, "format", provider)))
    wrap(cls, "option", _recording(_Calls.add_option))
    wrap(cls, "options", _recording(_record_options))
    wrap(cls, "tableProperty", _recording(lambda calls, property, value: calls.properties.update({property: value})))
    wrap(cls, "partitionedBy", _recording(lambda calls, *cols: setattr(calls, "partition_by", list(cols))))
    wrap(cls, "clusterBy", _recording(lambda calls, *cols: setattr(calls, "cluster_by", _names(cols))))
    for verb in _VERBS:
        wrap(cls, verb, _wrap_verb(verb))


def _record_table(calls: _Calls, args: tuple[Any, ...], kwargs: dict[str, Any], position: int) -> None:
    """Record the table of a DataFrameWriterV2. args, kwargs: of its constructor. position: of the argument `table`, which differs
    between classic sessions and Connect."""
    calls.table = kwargs["table"] if "table" in kwargs else args[position]


def _wrap_verb(verb: str) -> Callable[[Method], Method]:
    """Return a function that wraps a method of `writeTo`. verb: the method's name."""

    def make(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> None:
            calls = _calls(self)
            assert calls.table is not None
            spark, creates = session_of(self), verb in ("create", "createOrReplace")
            # Without `using`, a new table gets the default format, and other verbs are for the table of this name.
            is_ours = _is_ours(spark, calls.format) if calls.format or creates else catalog.is_ours(spark, calls.table)
            if not is_ours:
                original(self, *args, **kwargs)
                return
            with as_spark_raises():
                named_tables.run_verb(verb, _as_table_save(self, calls), calls.table, *args, **kwargs)

        return method

    return make


def _as_table_save(writer: Any, calls: _Calls) -> Save:
    """Return the calls on a DataFrameWriterV2 as a Save."""
    frame = _frame_of(writer)
    options = dict(calls.options)
    for name, value in calls.properties.items():
        if name.lower() != "location" and not name.lower().startswith("delta."):
            raise InvalidOptionError(
                f"The table property {name!r} is not one of Delta's, whose names begin with 'delta.'. Leave it out.", option=name
            )
        key = "path" if name.lower() == "location" else name
        options[key.lower()] = (key, value)
    partition_by = None if calls.partition_by is None else [_column_name(frame, col) for col in calls.partition_by]
    provider = _our_format(frame.sparkSession, calls.format)
    save = Save(frame, "error", options, partition_by, calls.cluster_by, callback_of(writer), provider=provider)
    return save.checked()


def _column_name(frame: Any, column: Any) -> str:
    """Return the name of a column of the frame, given as a name or as a Column."""
    text = column if isinstance(column, str) else str(column).removeprefix("Column<'").removesuffix("'>")
    bare = unquoted(text)
    column_name = next((name for name in frame.columns if name.lower() == bare.lower()), None)
    if column_name is None:
        raise UnsupportedOperationError(
            f"partitionedBy({text}): Delta tables are partitioned by columns, and {text} is none of {', '.join(frame.columns)}. "
            "For days, months or buckets add a column with the value and partition by it.",
            option="partitionedBy",
        )
    return str(column_name)


# ---------------------------------------------------------------- readStream, writeStream

# Recorded as the format of a stream whose rows go to foreach or foreachBatch; it is no format of pydelta.
_USER_FUNCTION = "a function of the user's"


def _install_stream_reader(cls: type[Any]) -> None:
    wrap(cls, "format", _recording(lambda calls, source: setattr(calls, "format", source)))
    wrap(cls, "option", _recording(_Calls.add_option))
    wrap(cls, "options", _recording(_record_options))
    wrap(cls, "load", partial(_wrap_load, is_stream=True))
    wrap(cls, "table", _wrap_stream_table)


def _wrap_stream_table(original: Method) -> Method:
    """Return a `table` of a stream that loads the table's path: Spark passes nothing about the table of a name to a source."""

    def table(self: Any, tableName: str) -> Any:
        spark = session_of(self)
        if not catalog.is_ours(spark, tableName):
            return original(self, tableName)
        with as_spark_raises():
            entry = catalog.find(spark, tableName)
            assert entry is not None, f"{tableName} was just found"
            path = entry.writable_path()
        return self.format(FORMAT).load(path)

    return table


def _install_stream_writer(cls: type[Any], in_clones: Callable[[Any, Any], Any]) -> None:
    wrap(cls, "format", _recording(lambda calls, source: setattr(calls, "format", source)))
    wrap(cls, "outputMode", _recording(lambda calls, outputMode: setattr(calls, "mode", outputMode)))
    wrap(cls, "partitionBy", _recording(lambda calls, *cols: setattr(calls, "partition_by", _names(cols))))
    wrap(cls, "clusterBy", _recording(lambda calls, *cols: setattr(calls, "cluster_by", _names(cols))))
    wrap(cls, "queryName", _recording(lambda calls, queryName: calls.add_option("queryName", queryName)))
    wrap(cls, "option", _recording(_Calls.add_option))
    wrap(cls, "options", _recording(_record_options))
    wrap(cls, "foreach", _recording(lambda calls, f: setattr(calls, "format", _USER_FUNCTION)))
    wrap(cls, "foreachBatch", partial(_wrap_foreach_batch, in_clones))
    wrap(cls, "start", _wrap_start)
    wrap(cls, "toTable", _wrap_to_table)


def _wrap_foreach_batch(in_clones: Callable[[Any, Any], Any], original: Method) -> Method:
    """in_clones: wraps the user's function, because Spark may call it with frames of a clone of the session, where pydelta is not
    registered."""

    def foreachBatch(self: Any, func: Any) -> Any:
        result = original(self, in_clones(session_of(self), func))
        _calls(self).format = _USER_FUNCTION
        return result

    return foreachBatch


def _apply_start(writer: Any, outputMode: str | None, partitionBy: Any, queryName: str | None, options: dict[str, Any]) -> None:
    """Call the writer's methods for the arguments of `start` or `toTable`, which records them."""
    writer.options(**options)
    for method, value in ((writer.outputMode, outputMode), (writer.partitionBy, partitionBy), (writer.queryName, queryName)):
        if value is not None:
            method(value)


def _wrap_start(original: Method) -> Method:
    def start(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> Any:
        if not _is_ours(session_of(self), format or _calls(self).format):
            return original(self, path, format, outputMode, partitionBy, queryName, **options)
        _apply_start(self, outputMode, partitionBy, queryName, options)
        with as_spark_raises():
            return _as_stream_save(self, original).start(path)

    return start


def _wrap_to_table(original: Method) -> Method:
    def toTable(
        self: Any,
        tableName: str,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> Any:
        source = format or _calls(self).format
        spark = session_of(self)
        if not _is_ours(spark, source) and not (source is None and catalog.is_ours(spark, tableName)):
            return original(self, tableName, format, outputMode, partitionBy, queryName, **options)
        _apply_start(self, outputMode, partitionBy, queryName, options)
        with as_spark_raises():
            save = _as_stream_save(self, original_method(type(self), "start"))
            return replace(save, provider=_our_format(spark, source)).to_table(tableName)

    return toTable


def _as_stream_save(writer: Any, launch: Method) -> StreamSave:
    calls, frame = _calls(writer), _frame_of(writer)
    return StreamSave(writer, frame, launch, calls.mode or "append", calls.options, calls.partition_by, calls.cluster_by)
