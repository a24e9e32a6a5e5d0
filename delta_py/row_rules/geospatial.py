"""Shapes of geometry and geography columns: which values a column accepts, and how data files mark them.

In: WKB, or Spark's struct of an SRID and WKB. Out: WKB, in a data file under Parquet's logical type GEOMETRY or GEOGRAPHY, which
readers need to know the CRS. pyarrow writes that type for the Arrow extension `geoarrow.wkb`, since version 21 and not for every
CRS and algorithm. So the written type is checked, and a column that pyarrow cannot mark is not written.
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
from delta_py.protocol.features import has_geospatial
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
from delta_py.types.type_walk import all_types

Converter: TypeAlias = Callable[[pa.Array], pa.Array]

_EXTENSION = "geoarrow.wkb"
_SHORTEST_BYTES = 9  # byte order, type, number of parts: an empty collection
_KIND_COUNT = 7  # kinds of shapes: point, line string, polygon, and collections of these
_LARGEST_DIMENSION_CODE = 3000  # XYZM, the largest of the thousands that are added to the kind


class _Wkb(pa.ExtensionType):  # type: ignore[misc]
    """WKB with a CRS, for the Parquet writer; it is not registered, so that other libraries can register theirs."""

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
    """The Arrow type with which pyarrow writes the column under Parquet's type GEOMETRY or GEOGRAPHY. Only for a type for which
    can_mark is true."""
    metadata: dict[str, str] = {} if kind.crs == DEFAULT_CRS else {"crs": kind.crs}
    if kind.algorithm is not None:
        metadata["edges"] = kind.algorithm
    return _Wkb(orjson.dumps(metadata))


@lru_cache(maxsize=256)
def can_mark(kind: GeospatialType) -> bool:
    """Whether this pyarrow writes Parquet's type GEOMETRY or GEOGRAPHY with the column's CRS and algorithm. Tries it with an
    empty file in memory."""
    if kind.crs == ANY_CRS:
        return False
    field, sink = pa.field("shape", parquet_type(kind)), pa.BufferOutputStream()
    try:
        pq.ParquetWriter(sink, pa.schema([field]), store_schema=False).close()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False  # pyarrow does not know the algorithm
    written_type = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema.column(0).logical_type
    crs = "" if kind.crs == DEFAULT_CRS else kind.crs
    expected = f"Geometry(crs={crs})" if kind.algorithm is None else f"Geography(crs={crs}, algorithm={kind.algorithm})"
    return str(written_type) == expected


# ---------------------------------------------------------------- values


def check_shape_columns(schema: StructType) -> None:
    """Check that a table may have these columns. Raises SchemaMismatchError: DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED for columns in
    which each value has its own CRS, DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES for columns with shapes that have a default."""
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
    """Check that shapes in the data have the types of the table's columns. Raises SchemaMismatchError
    (DELTA_FAILED_TO_MERGE_FIELDS) for shapes in the data, at any depth, whose table column has another type or CRS. The casts
    check other types. name: the column's name, for messages."""
    match data, table:
        case StructType(fields), StructType():
            for f in fields:
                table_field = table.find(f.name)
                if table_field is not None:
                    field_name = f"{name}.{table_field.name}" if name else table_field.name
                    check_same_shapes(f.data_type, table_field.data_type, field_name)
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
    """Return a function that converts values of the data to the column's WKB; None for data of another type. name: the column's
    name, for messages.

    Data is WKB (binary), which is assumed to have the column's CRS, or Spark's struct of SRID and WKB.
    The returned function raises SchemaMismatchError (DELTA_CAST_OVERFLOW_IN_TABLE_WRITE) for bytes that are not WKB and for
    another SRID.
    """
    types = pa.types
    if any(test(source) for test in (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)):
        return lambda array: _check_wkb(array.cast(pa.binary()), kind, name)
    if not types.is_struct(source) or {f.name for f in source} != {"srid", "wkb"}:
        return None
    # Spark marks the field `wkb` of its struct with the kind: geometry or geography.
    if (source.field("wkb").metadata or {}).get(kind.kind.encode()) != b"true":
        return None

    def convert(array: pa.Array) -> pa.Array:
        srid, wkb = array.flatten() if array.type.field(0).name == "srid" else reversed(array.flatten())
        srids = pc.unique(srid.filter(pc.is_valid(array))).to_pylist()
        other_srids = [data_srid for data_srid in srids if data_srid != kind.srid]
        if other_srids:
            raise _does_not_fit(name, kind, f"A shape has the SRID {other_srids[0]}.")
        return _check_wkb(wkb, kind, name)

    return convert


def extension_crs(source: pa.BaseExtensionType) -> Any:
    """The CRS in the metadata of a GeoArrow extension; None if it has none, and for other extensions."""
    if not str(source.extension_name).startswith("geoarrow."):
        return None
    try:
        metadata = orjson.loads(source.__arrow_ext_serialize__() or b"{}")
    except orjson.JSONDecodeError:
        return None
    return metadata.get("crs") if isinstance(metadata, dict) else None


def _check_wkb(wkb: pa.Array, kind: GeospatialType, name: str) -> pa.Array:
    """The array, if each value begins like WKB: with the kind of shape and the number of dimensions.
    Parquet's WKB has no flags for SRID and dimensions in the number of the shape, unlike PostGIS's.
    """
    valid_values = wkb.drop_null()
    if not len(valid_values):
        return wkb
    # Where each value begins in the buffer of bytes, and where the last one ends.
    starts = np.frombuffer(valid_values.buffers()[1], np.int32)[valid_values.offset : valid_values.offset + len(valid_values) + 1]
    if (np.diff(starts) < _SHORTEST_BYTES).any():
        raise _does_not_fit(name, kind, "A value is too short for WKB.")
    data = np.frombuffer(valid_values.buffers()[2], np.uint8)
    # The first five bytes of each value: the byte order (1 is little-endian) and the shape's number.
    heads = data[starts[:-1, None] + np.arange(5)]
    byte_order, number = heads[:, 0], np.ascontiguousarray(heads[:, 1:])
    shape = np.where(byte_order == 1, number.view("<u4")[:, 0], number.view(">u4")[:, 0])
    # The shape's number is 1 to 7 for its kind, plus 0, 1000, 2000 or 3000 for its dimensions.
    is_valid = (byte_order <= 1) & (shape < _LARGEST_DIMENSION_CODE + 1000) & (shape % 1000 >= 1) & (shape % 1000 <= _KIND_COUNT)
    if not is_valid.all():
        value = valid_values[int(np.argmin(is_valid))].as_py()[:_SHORTEST_BYTES].hex()
        raise _does_not_fit(name, kind, f"A value begins with the bytes {value}, which is no WKB that Parquet files hold.")
    return wkb


def _does_not_fit(name: str, kind: GeospatialType, why: str) -> SchemaMismatchError:
    """The error for a value that the column cannot hold. name: the column's name. why: a sentence about the value."""
    return SchemaMismatchError(
        f"Column {name} of the table is {kind.text}, and the data has a value that it cannot hold. {why} Nothing was written. "
        "Write ISO WKB of points, lines, polygons or collections of them, in the column's CRS.",
        error_class="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        sql_state="22003",
        column=name,
        table_type=kind.text,
    )
