"""Shapes of geometry and geography columns: which values a column takes, and how data files mark them.

In: WKB, or Spark's struct of an SRID and WKB. Out: WKB, in a data file under Parquet's logical type GEOMETRY or GEOGRAPHY, which
readers need to know the CRS. pyarrow writes that type for the Arrow extension `geoarrow.wkb`, since version 21 and not for every
CRS and algorithm: what it writes is looked at, and a column that it cannot mark is not written.
Protocol: Delta Data Type to Parquet Type Mappings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_py.errors import SchemaMismatchError
from delta_py.protocol.features import all_types, has_geospatial
from delta_py.types.column_rules import DEFAULT
from delta_py.types.schema import (
    ANY_CRS,
    DEFAULT_CRS,
    ArrayType,
    DataType,
    GeospatialType,
    MapType,
    StructType,
    type_name,
)

Converter: TypeAlias = Callable[[pa.Array], pa.Array]

_EXTENSION = "geoarrow.wkb"
_SHORTEST_BYTES = 9  # byte order, type, number of parts: a collection without any
_KINDS = 7  # of point, line string, polygon, and collections of these
_DIMENSIONS = 3000  # XYZM, the highest of the thousands that are added to the kind


class _Wkb(pa.ExtensionType):  # type: ignore[misc]
    """WKB with a CRS, as the writer of Parquet files knows it; not registered, so that other libraries may."""

    def __init__(self, metadata: bytes) -> None:
        self._metadata = metadata
        super().__init__(pa.binary(), _EXTENSION)

    def __arrow_ext_serialize__(self) -> bytes:
        return self._metadata

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> _Wkb:
        return cls(serialized)


# ---------------------------------------------------------------- in data files


def parquet_type(kind: GeospatialType) -> pa.ExtensionType:
    """The Arrow type by which pyarrow marks a column as the type says, if can_mark."""
    metadata: dict[str, str] = {} if kind.crs == DEFAULT_CRS else {"crs": kind.crs}
    if kind.algorithm is not None:
        metadata["edges"] = kind.algorithm
    return _Wkb(orjson.dumps(metadata))


@lru_cache(maxsize=256)
def can_mark(kind: GeospatialType) -> bool:
    """Whether this pyarrow writes the logical type of the column, with its CRS and algorithm."""
    if kind.crs == ANY_CRS:
        return False
    field, sink = pa.field("shape", parquet_type(kind)), pa.BufferOutputStream()
    try:
        pq.ParquetWriter(sink, pa.schema([field]), store_schema=False).close()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False  # an algorithm that it does not know
    written = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema.column(0).logical_type
    crs = "" if kind.crs == DEFAULT_CRS else kind.crs
    expected = f"Geometry(crs={crs})" if kind.algorithm is None else f"Geography(crs={crs}, algorithm={kind.algorithm})"
    return str(written) == expected


# ---------------------------------------------------------------- values


def check_shape_columns(schema: StructType) -> None:
    """Raises SchemaMismatchError: DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED for columns whose values each have a CRS of their own,
    DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES for columns with shapes that have a default."""
    for f in schema.fields:
        if DEFAULT in f.metadata and has_geospatial(f.data_type):
            raise SchemaMismatchError(
                f"Column {f.name} has the type {type_name(f.data_type)} and the default {f.metadata[DEFAULT]}. Columns with "
                "geometry or geography have no defaults. Nothing was written. Leave the default out.",
                error_class="DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES",
                sql_state="0AKDC",
                column=f.name,
            )
    for kind in all_types(schema):
        if isinstance(kind, GeospatialType) and kind.crs.upper() == ANY_CRS:
            raise SchemaMismatchError(
                f"A column has the type {kind.text}, whose values have a CRS each. Data files hold one CRS a column. Give the "
                f"column the SRID of its values, such as {kind.kind}(4326).",
                error_class="DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED",
                sql_state="0A000",
                srid=-1,
            )


def check_same_shapes(data: DataType, table: DataType, name: str = "") -> None:
    """Raises SchemaMismatchError (DELTA_FAILED_TO_MERGE_FIELDS) for shapes in the data, at any depth, that a column of another
    type or CRS would get. Other types are the business of the casts. name: of the column, for messages."""
    match data, table:
        case StructType(fields), StructType():
            for f in fields:
                known = table.find(f.name)
                if known is not None:
                    check_same_shapes(f.data_type, known.data_type, f"{name}.{known.name}" if name else known.name)
        case ArrayType(element), ArrayType(known_element):
            check_same_shapes(element, known_element, f"{name}.element")
        case MapType(key, value), MapType(known_key, known_value):
            check_same_shapes(key, known_key, f"{name}.key")
            check_same_shapes(value, known_value, f"{name}.value")
        case GeospatialType(), _ if data != table:
            raise SchemaMismatchError(
                f"Column {name} of the table is {type_name(table)} and cannot take {type_name(data)} from the data. Nothing was "
                "written. Bring the shapes into the column's type and CRS first.",
                error_class="DELTA_FAILED_TO_MERGE_FIELDS",
                sql_state="22005",
                column=name,
                table_type=type_name(table),
                data_type=type_name(data),
            )


def shape_converter(source: pa.DataType, kind: GeospatialType, name: str) -> Converter | None:
    """How values of the data become WKB of the column; None for data of another type. name: of the column, for messages.

    Data is WKB (binary), whose CRS is taken to be the column's, or Spark's struct of SRID and WKB.
    What is given raises SchemaMismatchError (DELTA_CAST_OVERFLOW_IN_TABLE_WRITE) for bytes that are no WKB and for another SRID.
    """
    types = pa.types
    if any(test(source) for test in (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)):
        return lambda array: _checked(array.cast(pa.binary()), kind, name)
    if not types.is_struct(source) or {f.name for f in source} != {"srid", "wkb"}:
        return None
    if (source.field("wkb").metadata or {}).get(kind.kind.encode()) != b"true":
        return None

    def convert(array: pa.Array) -> pa.Array:
        srid, wkb = array.flatten() if array.type.field(0).name == "srid" else reversed(array.flatten())
        others = pc.unique(srid.filter(pc.is_valid(array))).to_pylist()
        if any(other != kind.srid for other in others):
            raise _does_not_fit(name, kind, f"A shape has the SRID {next(other for other in others if other != kind.srid)}.")
        return _checked(wkb, kind, name)

    return convert


def extension_crs(source: pa.BaseExtensionType) -> Any:
    """The CRS that an Arrow extension of GeoArrow says; None where it says none, and for other extensions."""
    if not str(source.extension_name).startswith("geoarrow."):
        return None
    try:
        metadata = orjson.loads(source.__arrow_ext_serialize__() or b"{}")
    except orjson.JSONDecodeError:
        return None
    return metadata.get("crs") if isinstance(metadata, dict) else None


def _checked(wkb: pa.Array, kind: GeospatialType, name: str) -> pa.Array:
    """The array, if each value begins as WKB does: which shape it is, and in how many dimensions.
    What Parquet calls WKB has no flags for SRID and dimensions in the number of the shape, as PostGIS's has."""
    given = wkb.drop_null()
    if not len(given):
        return wkb
    starts = np.frombuffer(given.buffers()[1], np.int32)[given.offset : given.offset + len(given) + 1]
    if (np.diff(starts) < _SHORTEST_BYTES).any():
        raise _does_not_fit(name, kind, "A value is too short for WKB.")
    data = np.frombuffer(given.buffers()[2], np.uint8)
    head = data[starts[:-1, None] + np.arange(5)]
    order, number = head[:, 0], np.ascontiguousarray(head[:, 1:])
    shape = np.where(order == 1, number.view("<u4")[:, 0], number.view(">u4")[:, 0])
    lawful = (order <= 1) & (shape < _DIMENSIONS + 1000) & (shape % 1000 >= 1) & (shape % 1000 <= _KINDS)
    if not lawful.all():
        value = given[int(np.argmin(lawful))].as_py()[:_SHORTEST_BYTES].hex()
        raise _does_not_fit(name, kind, f"A value begins with the bytes {value}, which is no WKB that Parquet files hold.")
    return wkb


def _does_not_fit(name: str, kind: GeospatialType, why: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"Column {name} of the table is {kind.text}, and the data has a value that it cannot hold. {why} Nothing was written. "
        "Write ISO WKB of points, lines, polygons or collections of them, in the column's CRS.",
        error_class="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        sql_state="22003",
        column=name,
        table_type=kind.text,
    )
