"""The seam: what Spark's readers and writers do differently when the format is pydelta.

Spark's analyzer takes only `append` and `overwrite` for a Python data source: it refuses its own default mode, `ignore`,
`partitionBy` and `clusterBy` before Python is asked. And no worker process can see the session's settings. So `install`
wraps some methods of DataFrameReader and DataFrameWriter, classic and Connect. The wrappers note what is called and then
call Spark's own; only `load` and `save` of our format go another way: `save` starts a fresh writer of Spark's with the
mode and partitioning as options, `load` adds the session's settings. Other formats see no difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from pyspark.errors import PySparkException

from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from spark_plugin.options import CLUSTER_BY, MODE, PARTITION_BY, PARTITIONS_PER_CORE, SESSION
from spark_plugin.source import FORMAT

_CALLS = "_pydelta_calls"
_SIZE = re.compile(r"(?P<number>\d+)\s*(?P<unit>[kmgtp]?)b?", re.IGNORECASE)


@dataclass(slots=True)
class _Calls:
    """What was called on one reader or writer, in whatever order. options: by lower-case name, as they were spelled."""

    format: str | None = None
    mode: str | None = None
    partition_by: list[str] | None = None
    cluster_by: list[str] | None = None
    bucketed: bool = False
    options: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def add_option(self, key: str, value: Any) -> None:
        if value is not None:
            self.options[key.lower()] = (key, value)


def install(*, connect: bool) -> None:
    """Wrap the methods, once in a process."""
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

    _install_reader(DataFrameReader)
    _install_writer(DataFrameWriter)
    if connect:
        from pyspark.sql.connect.readwriter import DataFrameReader as ConnectReader
        from pyspark.sql.connect.readwriter import DataFrameWriter as ConnectWriter

        _install_reader(ConnectReader)
        _install_writer(ConnectWriter)


def _install_reader(cls: type[Any]) -> None:
    _wrap(cls, "format", _noting(lambda calls, source: setattr(calls, "format", source)))
    _wrap(cls, "load", _load)


def _install_writer(cls: type[Any]) -> None:
    _wrap(cls, "format", _noting(lambda calls, source: setattr(calls, "format", source)))
    _wrap(cls, "mode", _noting(_note_mode))
    _wrap(cls, "partitionBy", _noting(lambda calls, *cols: setattr(calls, "partition_by", _names(cols))))
    _wrap(cls, "clusterBy", _noting(lambda calls, *cols: setattr(calls, "cluster_by", _names(cols))))
    _wrap(cls, "bucketBy", _noting(lambda calls, *_, **__: setattr(calls, "bucketed", True)))
    _wrap(cls, "option", _noting(_Calls.add_option))
    _wrap(cls, "options", _noting(_note_options))
    _wrap(cls, "save", _save)
    _wrap(cls, "saveAsTable", _save_as_table)


_Method = Callable[..., Any]


def _wrap(cls: type[Any], name: str, make: Callable[[_Method], _Method]) -> None:
    original = getattr(cls, name)
    if getattr(original, "_pydelta", False):
        return
    wrapped = wraps(original)(make(original))
    wrapped._pydelta = True  # type: ignore[attr-defined]
    setattr(cls, name, wrapped)


def _noting(note: Callable[..., None]) -> Callable[[_Method], _Method]:
    """A wrapper which notes a call that Spark accepted."""

    def make(original: _Method) -> _Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            note(_calls(self), *args, **kwargs)
            return result

        return method

    return make


def _calls(owner: Any) -> _Calls:
    found = owner.__dict__.get(_CALLS)
    if found is None:
        found = owner.__dict__[_CALLS] = _Calls()
    assert isinstance(found, _Calls)
    return found


def _note_mode(calls: _Calls, saveMode: str | None) -> None:
    if saveMode is not None:
        calls.mode = saveMode


def _note_options(calls: _Calls, **options: Any) -> None:
    for key, value in options.items():
        calls.add_option(key, value)


def _names(cols: tuple[Any, ...]) -> list[str]:
    """Spark takes names one by one, or as one list."""
    names: Iterable[Any] = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
    return [str(name) for name in names]


def _is_ours(spark: Any, name: str | None) -> bool:
    source = spark.conf.get("spark.sql.sources.default") if name is None else name
    return isinstance(source, str) and source.lower() == FORMAT


# ---------------------------------------------------------------- load


def _load(original: _Method) -> _Method:
    def load(self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> Any:
        spark = getattr(self, "_spark", None) or self._client
        if _is_ours(spark, format or _calls(self).format):
            options.setdefault(SESSION, session_settings(spark))
        return original(self, path, format, schema, **options)

    return load


def session_settings(spark: Any) -> str:
    """The option SESSION: what workers cannot find out by themselves. What a server does not tell is left out."""
    told: dict[str, Any] = {
        "timeZone": _conf(spark, "spark.sql.session.timeZone"),
        "maxPartitionBytes": _size(_conf(spark, "spark.sql.files.maxPartitionBytes")),
        "openCostInBytes": _size(_conf(spark, "spark.sql.files.openCostInBytes")),
        "wantedPartitions": _wanted_partitions(spark),
    }
    return json.dumps({name: value for name, value in told.items() if value is not None})


def _wanted_partitions(spark: Any) -> int | None:
    wanted = _conf(spark, "spark.sql.files.minPartitionNum")
    if wanted is not None:
        return int(wanted)
    cores = _conf(spark, "spark.sql.leafNodeDefaultParallelism") or _default_parallelism(spark)
    return None if cores is None else PARTITIONS_PER_CORE * int(cores)


def _default_parallelism(spark: Any) -> int | None:
    return None if is_connect(spark) else int(spark.sparkContext.defaultParallelism)


def is_connect(spark: Any) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _conf(spark: Any, name: str) -> str | None:
    try:
        value = spark.conf.get(name, None)
    except PySparkException:  # a server may keep a setting to itself
        return None
    return None if value in (None, "<undefined>") else str(value)


def _size(text: str | None) -> int | None:
    """`134217728b`, `128m`, `64 KB` -> bytes."""
    found = None if text is None else _SIZE.fullmatch(text.strip())
    return None if found is None else int(found["number"]) << 10 * " kmgtp".index(found["unit"].lower() or " ")


# ---------------------------------------------------------------- save


def _save(original: _Method) -> _Method:
    def save(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        if not _is_ours(self._spark, format or _calls(self).format):
            original(self, path, format, mode, partitionBy, **options)
            return
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        original(_translated(self), path)

    return save


def _translated(writer: Any) -> Any:
    """A writer of Spark's own on the same rows, with only what its analyzer accepts."""
    calls = _calls(writer)
    if calls.bucketed:
        raise UnsupportedOperationError("Delta tables have no buckets. Leave bucketBy and sortBy out.", option="bucketBy")
    mode = (calls.mode or "errorifexists").lower()
    fresh = _fresh(writer).format(FORMAT).mode("overwrite" if mode == "overwrite" else "append")
    for key, value in calls.options.values():
        fresh = fresh.option(key, value)
    fresh = fresh.option(MODE, mode).option(SESSION, session_settings(writer._spark))
    for name, columns in ((PARTITION_BY, calls.partition_by), (CLUSTER_BY, calls.cluster_by)):
        if columns is not None:
            fresh = fresh.option(name, json.dumps(columns))
    return fresh


def _fresh(writer: Any) -> Any:
    if is_connect(writer._spark):
        return type(writer)(writer._df, writer._spark, writer._callback)
    return type(writer)(writer._df)


def _save_as_table(original: _Method) -> _Method:
    def saveAsTable(
        self: Any, name: str, format: str | None = None, mode: str | None = None, partitionBy: Any = None, **options: Any
    ) -> None:
        if not _is_ours(self._spark, format or _calls(self).format):
            original(self, name, format, mode, partitionBy, **options)
            return
        raise InvalidOptionError(
            f"saveAsTable({name!r}) does not tell a Python data source where the table is. Write with "
            f"df.write.format('pydelta').save(path); if you want the name in the catalog, then CREATE TABLE {name} USING "
            "pydelta OPTIONS (path '...').",
            error_class="DELTA_OPERATION_NOT_SUPPORTED",
            sql_state="0AKDC",
            table=name,
        )

    return saveAsTable
