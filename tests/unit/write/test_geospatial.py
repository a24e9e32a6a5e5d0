"""Columns of geometry and geography: their types, which values may be written, their form in files, and what the table allows."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter_columns import add_columns, change_columns, drop_columns
from delta_py.alter.column_changes import ColumnChange, NewColumn
from delta_py.alter.drop_feature import drop_feature
from delta_py.copies.convert_to_delta import ConvertRequest, convert
from delta_py.definition.create import create_table, define_table
from delta_py.errors import DeltaError, UnsupportedTableFeatureError
from delta_py.optimize.optimize import LocalBinWriters, optimize
from delta_py.optimize.optimize_bins import OptimizeRequest
from delta_py.protocol.features import supported_features
from delta_py.row_rules.geospatial import can_mark, check_same_shapes
from delta_py.row_rules.store_assignment_casts import assign
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import (
    LONG,
    ArrayType,
    DataType,
    GeospatialType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    parse_schema,
    primitive_from_name,
    schema_to_json,
)

GEOMETRY = primitive_from_name("geometry(OGC:CRS84)")
GEOGRAPHY = primitive_from_name("geography(OGC:CRS84, SPHERICAL)")
FLAT = primitive_from_name("geometry(SRID:0)")
UNMARKED = primitive_from_name("geography(OGC:CRS84, vincenty)")


def point(x: float, y: float, order: str = "<") -> bytes:
    return struct.pack(f"{order}BIdd", order == "<", 1, x, y)


POINTS = [point(1, 2), None, point(-3, 4.5, ">")]


def condition(run: Callable[[], Any]) -> str:
    with pytest.raises(DeltaError) as caught:
        run()
    return caught.value.error_class


def made(path: Path, *fields: StructField, **options: Any) -> LocalStore:
    store = LocalStore(str(path))
    create_table(store, define_table(StructType(fields), **options))
    return store


def shapes(path: Path, kind: DataType = GEOMETRY) -> LocalStore:
    store = made(path, StructField("id", LONG), StructField("g", kind))
    write_delta(store.root, pa.table({"id": [1, 2, 3], "g": pa.array(POINTS, pa.binary())}), mode="append")
    return store


# ---------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("geometry", ("geometry", "OGC:CRS84", None, 4326)),
        ("geometry(OGC:CRS84)", ("geometry", "OGC:CRS84", None, 4326)),
        ("geometry(EPSG:3857)", ("geometry", "EPSG:3857", None, 3857)),
        ("geometry(SRID:0)", ("geometry", "SRID:0", None, 0)),
        ("geometry( srid:5 )", ("geometry", "srid:5", None, 5)),
        ("geometry(projjson:my.property)", ("geometry", "projjson:my.property", None, None)),
        ("geography", ("geography", "OGC:CRS84", "spherical", 4326)),
        ("geography(OGC:CRS84)", ("geography", "OGC:CRS84", "spherical", 4326)),
        ("geography(vincenty)", ("geography", "OGC:CRS84", "vincenty", 4326)),
        ("geography(OGC:CRS84, SPHERICAL)", ("geography", "OGC:CRS84", "spherical", 4326)),
        ("geography(EPSG:4267,karney)", ("geography", "EPSG:4267", "karney", 4267)),
    ],
)
def test_names_of_types_are_parsed_and_kept_as_they_are(name: str, expected: tuple[Any, ...]) -> None:
    kind = primitive_from_name(name)
    assert isinstance(kind, GeospatialType)
    assert (kind.kind, kind.crs, kind.algorithm, kind.srid) == expected
    schema = StructType((StructField("g", ArrayType(kind)),))
    assert parse_schema(schema_to_json(schema)) == schema
    assert orjson.loads(schema_to_json(schema))["fields"][0]["type"]["elementType"] == name


@pytest.mark.parametrize(
    "name",
    ["geometry(4326)", "geometry()", "geometry(a:b, spherical)", "geography(a:b, c, d)", "geography()", "geometry(a:b",
     "geometryx", "geometry(a b:c)", "geography(OGC:CRS84, )"],
)  # fmt: skip
def test_other_names_stay_unknown(name: str) -> None:
    assert primitive_from_name(name) == PrimitiveType(name)


def test_two_spellings_of_a_type_are_equal() -> None:
    assert primitive_from_name("geography(OGC:CRS84, spherical)") == GEOGRAPHY == primitive_from_name("geography")
    assert GEOMETRY not in (FLAT, GEOGRAPHY)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("kind", "mark"),
    [
        (GEOMETRY, "Geometry(crs=)"),
        (FLAT, "Geometry(crs=SRID:0)"),
        (primitive_from_name("geometry(EPSG:3857)"), "Geometry(crs=EPSG:3857)"),
        (primitive_from_name("geometry(projjson:p)"), "Geometry(crs=projjson:p)"),
        (GEOGRAPHY, "Geography(crs=, algorithm=spherical)"),
        (primitive_from_name("geography(EPSG:4267, spherical)"), "Geography(crs=EPSG:4267, algorithm=spherical)"),
    ],
)
def test_files_say_type_and_crs_and_have_no_bounds(tmp_path: Path, kind: DataType, mark: str) -> None:
    store = shapes(tmp_path, kind)
    table = DeltaTable(store.root)
    assert table.to_arrow()["g"].to_pylist() == POINTS
    (file,) = tmp_path.glob("*.parquet")
    assert str(pq.ParquetFile(file).schema.column(1).logical_type) == mark
    add = orjson.loads((tmp_path / "_delta_log" / f"{1:020}.json").read_bytes().splitlines()[-1])["add"]
    stats = orjson.loads(add["stats"])
    assert (stats["minValues"], stats["maxValues"]) == ({"id": 1}, {"id": 3})
    assert stats["nullCount"] == {"id": 0, "g": 1}


def test_nested_shapes_are_marked_and_read_back(tmp_path: Path) -> None:
    nested = StructType((StructField("g", GEOMETRY), StructField("n", LONG)))
    store = made(
        tmp_path,
        StructField("s", nested),
        StructField("l", ArrayType(GEOGRAPHY)),
        StructField("m", MapType(LONG, GEOMETRY)),
        configuration={"delta.columnMapping.mode": "name"},
    )
    rows = pa.table(
        {
            "s": pa.array([{"g": POINTS[0], "n": 1}, None, {"g": None, "n": 2}], pa.struct({"g": pa.binary(), "n": pa.int64()})),
            "l": pa.array([POINTS, [], None], pa.list_(pa.binary())),
            "m": pa.array([[(1, POINTS[0])], None, [(2, None)]], pa.map_(pa.int64(), pa.binary())),
        }
    )
    write_delta(store.root, rows, mode="append")
    assert DeltaTable(store.root).to_arrow().to_pydict() == rows.to_pydict()
    (file,) = tmp_path.glob("*.parquet")
    columns = pq.ParquetFile(file).schema
    marks = [str(columns.column(i).logical_type) for i in range(len(columns))]
    assert sum(mark.startswith("Geometry") for mark in marks) == 2
    assert sum(mark.startswith("Geography") for mark in marks) == 1


@pytest.mark.parametrize("crs", ["EPSG:4326"])
def test_a_crs_that_pyarrow_writes_as_another_is_not_markable(crs: str) -> None:
    kind = primitive_from_name(f"geometry({crs})")
    assert isinstance(kind, GeospatialType)
    assert not can_mark(kind)


def test_a_column_that_cannot_be_marked_is_read_and_not_written(tmp_path: Path) -> None:
    store = shapes(tmp_path)
    log = tmp_path / "_delta_log"
    for file in log.iterdir():  # as if another writer had made the table
        file.write_text(file.read_text().replace("geometry(OGC:CRS84)", UNMARKED.text))  # type: ignore[union-attr]
    (log / f"{1:020}.crc").unlink(missing_ok=True)
    (log / f"{0:020}.crc").unlink(missing_ok=True)
    assert DeltaTable(store.root).to_arrow()["g"].to_pylist() == POINTS
    rows = pa.table({"id": [4], "g": pa.array([POINTS[0]], pa.binary())})
    with pytest.raises(UnsupportedTableFeatureError, match="vincenty"):
        write_delta(store.root, rows, mode="append")
    assert Snapshot.load(store).version == 1


def test_rows_of_shapes_are_deleted_updated_and_compacted(tmp_path: Path) -> None:
    store = shapes(tmp_path)
    write_delta(store.root, pa.table({"id": [4], "g": pa.array([POINTS[2]], pa.binary())}), mode="append")
    table = DeltaTable(store.root)
    table.delete("id = 2")
    table.delete("g IS NULL")
    optimize(store, OptimizeRequest(), LocalBinWriters())
    rows = DeltaTable(store.root).to_arrow().sort_by("id").to_pydict()
    assert rows == {"id": [1, 3, 4], "g": [POINTS[0], POINTS[2], POINTS[2]]}
    assert len(DeltaTable(store.root).to_arrow(filter="g IS NOT NULL")) == 3


# ---------------------------------------------------------------- values


def spark_shapes(values: list[dict[str, Any] | None], kind: str = "geometry") -> pa.Array:
    wkb = pa.field("wkb", pa.binary(), nullable=False, metadata={kind.encode(): b"true", b"srid": b"4326"})
    return pa.array(values, pa.struct([pa.field("srid", pa.int32(), nullable=False), wkb]))


def test_values_of_spark_become_wkb() -> None:
    shapes = spark_shapes([{"srid": 4326, "wkb": POINTS[0]}, None])
    assert assign(shapes, GEOMETRY, "g").to_pylist() == [POINTS[0], None]
    assert assign(pa.array([POINTS[0]], pa.large_binary()), GEOMETRY, "g").to_pylist() == [POINTS[0]]
    assert assign(pa.array([POINTS[0]], pa.binary(21)), GEOMETRY, "g").to_pylist() == [POINTS[0]]
    assert assign(pa.nulls(2), GEOMETRY, "g").to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("shape_values", "expected"),
    [
        (spark_shapes([{"srid": 3857, "wkb": POINTS[0]}]), "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        (spark_shapes([{"srid": 4326, "wkb": POINTS[0]}], "geography"), "DELTA_FAILED_TO_MERGE_FIELDS"),
        (pa.array(["POINT(1 2)"]), "DELTA_FAILED_TO_MERGE_FIELDS"),
        (pa.array([{"srid": 4326, "wkb": POINTS[0]}]), "DELTA_FAILED_TO_MERGE_FIELDS"),
        (pa.array([b""]), "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        (pa.array([None, POINTS[0], b"POINT(1 2)"], pa.binary()), "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        (pa.array([b"\x02" + POINTS[0][1:]]), "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        (pa.array([struct.pack("<BIIdd", 1, 0x20000001, 4326, 1, 2)]), "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        (pa.array([struct.pack("<BIdd", 1, 4001, 1, 2)]), "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
    ],
)
def test_what_is_no_shape_of_the_column_is_refused(shape_values: pa.Array, expected: str) -> None:
    assert condition(lambda: assign(shape_values, GEOMETRY, "g")) == expected


def test_slices_of_shapes_are_checked_by_their_own_values() -> None:
    shapes = pa.array([b"no shape", POINTS[0], None, POINTS[2], b"no shape"], pa.binary()).slice(1, 3)
    assert assign(shapes, GEOMETRY, "g").to_pylist() == [POINTS[0], None, POINTS[2]]


def test_an_extension_with_another_crs_is_refused() -> None:
    class Wkb(pa.ExtensionType):  # type: ignore[misc]
        def __init__(self, crs: bytes) -> None:
            self.crs = crs
            super().__init__(pa.binary(), "geoarrow.wkb")

        def __arrow_ext_serialize__(self) -> bytes:
            return self.crs

        @classmethod
        def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Wkb:
            return cls(serialized)

    def given(text: bytes) -> pa.Array:
        return pa.ExtensionArray.from_storage(Wkb(text), pa.array(POINTS, pa.binary()))

    for fits in (b"", b"{}", b'{"crs": "OGC:CRS84"}'):
        assert assign(given(fits), GEOMETRY, "g").to_pylist() == POINTS
    assert condition(lambda: assign(given(b'{"crs": "EPSG:3857"}'), GEOMETRY, "g")) == "DELTA_FAILED_TO_MERGE_FIELDS"


@pytest.mark.parametrize("data", [FLAT, GEOGRAPHY, ArrayType(GEOMETRY)])
def test_shapes_of_wrong_type_or_crs_are_refused_before_rows(data: DataType) -> None:
    table = StructType((StructField("a", ArrayType(GEOMETRY)), StructField("b", PrimitiveType("binary"))))
    check_same_shapes(StructType((StructField("a", ArrayType(GEOMETRY)),)), table)
    if not isinstance(data, ArrayType):
        schema = StructType((StructField("A", ArrayType(data)),))
        assert condition(lambda: check_same_shapes(schema, table)) == "DELTA_FAILED_TO_MERGE_FIELDS"
        schema = StructType((StructField("b", data),))
        assert condition(lambda: check_same_shapes(schema, table)) == "DELTA_FAILED_TO_MERGE_FIELDS"


# ---------------------------------------------------------------- tables


def test_a_column_of_shapes_brings_the_feature(tmp_path: Path) -> None:
    store = made(tmp_path / "new", StructField("s", StructType((StructField("g", GEOGRAPHY),))))
    protocol = Snapshot.load(store).protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert "geospatial" in (protocol.reader_features or ()) and "geospatial" in (protocol.writer_features or ())
    store = made(tmp_path / "old", StructField("id", LONG))
    add_columns(store, [NewColumn(("g",), GEOMETRY)])
    assert "geospatial" in supported_features(Snapshot.load(store).protocol)
    store = made(tmp_path / "preview", StructField("id", LONG), configuration={"delta.feature.geospatial-dev": "supported"})
    add_columns(store, [NewColumn(("g",), GEOMETRY)])
    assert "geospatial" not in supported_features(Snapshot.load(store).protocol)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"partition_by": ("g",)}, "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        ({"cluster_by": ("g",)}, "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
    ],
)
def test_shapes_do_not_arrange_rows(tmp_path: Path, options: dict[str, Any], expected: str) -> None:
    fields = StructType((StructField("id", LONG), StructField("g", GEOMETRY)))
    assert condition(lambda: define_table(fields, **options)) == expected
    store = shapes(tmp_path)
    request = OptimizeRequest(z_order=("g",), check_z_order_stats=False)
    assert (
        condition(lambda: optimize(store, request, LocalBinWriters())) == "DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES"
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tables_for_iceberg_have_no_shapes(version: int) -> None:
    schema = StructType((StructField("s", StructType((StructField("g", GEOMETRY),))),))
    properties = {f"delta.enableIcebergCompatV{version}": "true"}
    assert condition(lambda: define_table(schema, configuration=properties)).endswith("UNSUPPORTED_DATA_TYPE")


def test_columns_with_shapes_have_no_defaults(tmp_path: Path) -> None:
    allowed = {"delta.feature.allowColumnDefaults": "supported"}
    inside = StructType((StructField("g", GEOMETRY),))
    for kind in (GEOMETRY, inside):
        schema = StructType((StructField("id", LONG), StructField("g", kind, True, {"CURRENT_DEFAULT": "NULL"})))
        assert condition(lambda: define_table(schema, configuration=allowed)) == "DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES"  # noqa: B023
    store = made(tmp_path, StructField("id", LONG), StructField("g", GEOMETRY), configuration=allowed)
    change = ColumnChange("g", default="NULL")
    assert condition(lambda: change_columns(store, [change])) == "DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES"


@pytest.mark.parametrize("kind", [GEOMETRY, GEOGRAPHY])
def test_directory_with_shapes_is_not_converted(tmp_path: Path, kind: DataType) -> None:
    shapes(tmp_path / "t", kind)
    (tmp_path / "d").mkdir()
    for file in (tmp_path / "t").glob("*.parquet"):
        file.rename(tmp_path / "d" / "a.parquet")
    with pytest.raises(DeltaError, match="cannot be taken over"):
        convert(LocalStore(str(tmp_path / "d")), ConvertRequest())


def test_a_type_of_any_crs_is_refused() -> None:
    schema = StructType((StructField("l", ArrayType(primitive_from_name("geometry(SRID:ANY)"))),))
    assert condition(lambda: define_table(schema)) == "DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED"


def test_the_feature_is_dropped_when_no_column_needs_it(tmp_path: Path) -> None:
    store = made(
        tmp_path,
        StructField("id", LONG),
        StructField("s", StructType((StructField("g", GEOMETRY),))),
        configuration={"delta.columnMapping.mode": "name"},
    )
    assert condition(lambda: drop_feature(store, "geospatial")) == "DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE"
    drop_columns(store, ["s"])
    drop_feature(store, "geospatial")
    dropped = Snapshot.load(store)
    assert "geospatial" not in supported_features(dropped.protocol)
    # Readers without the feature do not need the versions that had it.
    assert "checkpointProtection" in supported_features(dropped.protocol) and dropped.segment.checkpoint is not None
