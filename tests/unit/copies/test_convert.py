"""CONVERT TO DELTA: the result for files, directories, types and statistics, and refusals that change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.copies import convert_to_delta as convert_module
from delta_py.copies.convert_to_delta import ConvertRequest, convert, read_here
from delta_py.errors import (
    DeltaError,
    InvalidOptionError,
    ProtocolChangedException,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_py.parquet.foreign_files import FooterReading
from delta_py.storage.local import LocalStore
from delta_py.types.schema import StructField, StructType, primitive_from_name

DAY = pa.schema([("day", pa.date32())])


def put(directory: Path, name: str, rows: pa.Table | dict[str, Any], **options: Any) -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.table(rows), path, **options)
    return path


def tree(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def refused(directory: Path, kind: type[DeltaError], condition: str, *parts: str, **options: Any) -> DeltaError:
    """The error of a conversion that changes nothing."""
    before = tree(directory)
    with pytest.raises(kind) as caught:
        DeltaTable.convert(str(directory), **options)
    assert caught.value.error_class == condition
    for part in parts:
        assert part in caught.value.message, caught.value.message
    assert tree(directory) == before
    return caught.value


def rows(table: DeltaTable, key: str = "id") -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: row[key])


def statistics(table: DeltaTable) -> dict[str, Any]:
    files = table.files().to_pylist()
    return {file["path"]: None if file["stats"] is None else json.loads(file["stats"]) for file in files}


# ---------------------------------------------------------------- files and the log


def test_convert_adds_every_file_and_leaves_them_as_they_are(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1, 2]})
    put(tmp_path, "sub/b.parquet", {"id": [3]})
    for name in ("_SUCCESS", ".a.parquet.crc", "_hidden/c.parquet", ".d/e.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"not parquet")
    before = tree(tmp_path)
    table = DeltaTable.convert(str(tmp_path), name="events", description="of a test", configuration={"delta.appendOnly": "true"})
    assert [row["id"] for row in rows(table)] == [1, 2, 3]
    assert sorted(table.files()["path"].to_pylist()) == ["a.parquet", "sub/b.parquet"]
    assert before.items() <= tree(tmp_path).items()
    assert (table.version, table.metadata.name, table.metadata.description) == (0, "events", "of a test")
    assert dict(table.metadata.configuration) == {"delta.appendOnly": "true"}
    files = {file["path"]: file for file in table.files().to_pylist()}
    status = (tmp_path / "a.parquet").stat()
    assert files["a.parquet"]["size"] == status.st_size
    assert files["a.parquet"]["modification_time"] == status.st_mtime_ns // 1_000_000


def test_history_says_what_the_reference_says(tmp_path: Path) -> None:
    put(tmp_path, "day=2024-05-01/a.parquet", {"id": [1]})
    day = StructType((StructField("day", primitive_from_name("date")),))
    convert(LocalStore(str(tmp_path)), ConvertRequest(day, catalog_table="a.b"))
    (entry,) = DeltaTable(str(tmp_path)).history().to_pylist()
    assert entry["operation"] == "CONVERT"
    assert dict(entry["operationParameters"]) == {
        "numFiles": "1",
        "partitionedBy": '["day"]',
        "collectStats": "true",
        "catalogTable": "a.b",
        "sourceFormat": "parquet",
    }
    assert dict(entry["operationMetrics"]) == {"numConvertedFiles": "1"}


def test_a_table_stays_as_it_is(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"id": [1]}))
    put(tmp_path, "stray.parquet", {"other": ["x"]})
    before = tree(tmp_path)
    table = DeltaTable.convert(str(tmp_path), DAY)
    assert (table.version, rows(table)) == (0, [{"id": 1}])
    assert tree(tmp_path) == before
    assert convert(LocalStore(str(tmp_path)), ConvertRequest()).version is None


def test_convert_keeps_a_table_that_another_writer_creates(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})

    def read(reading: FooterReading, files: pa.Table) -> pa.Table:
        if not (tmp_path / "_delta_log").exists():
            write_delta(str(tmp_path), pa.table({"other": [7]}))
        return read_here(reading, files)

    with pytest.raises(ProtocolChangedException):
        convert(LocalStore(str(tmp_path)), ConvertRequest(), read)
    assert rows(DeltaTable(str(tmp_path)), "other") == [{"other": 7}]
    assert (tmp_path / "a.parquet").exists()


def test_a_converted_table_can_be_written_to(tmp_path: Path) -> None:
    put(tmp_path, "day=2024-05-01/a.parquet", {"id": [1]})
    DeltaTable.convert(str(tmp_path), DAY)
    write_delta(str(tmp_path), pa.table({"id": [2], "day": [date(2024, 5, 2)]}), mode="append")
    assert rows(DeltaTable(str(tmp_path))) == [{"id": 1, "day": date(2024, 5, 1)}, {"id": 2, "day": date(2024, 5, 2)}]
    assert DeltaTable(str(tmp_path)).to_arrow(filter="day = date'2024-05-01'")["id"].to_pylist() == [1]


def test_row_ids_are_given_where_rows_are_tracked(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1, 2]})
    put(tmp_path, "b.parquet", {"id": [3]})
    table = DeltaTable.convert(str(tmp_path), configuration={"delta.enableRowTracking": "true"})
    assert sorted(file["base_row_id"] for file in table.files().to_pylist()) == [0, 2]


@pytest.mark.parametrize("properties", [{"delta.enableRowTracking": "true"}, {"delta.feature.rowTracking": "supported"}])
def test_rows_cannot_be_tracked_without_statistics(tmp_path: Path, properties: dict[str, str]) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    condition = "DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS"
    refused(tmp_path, InvalidOptionError, condition, collect_stats=False, configuration=properties)


def test_column_mapping_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    refused(
        tmp_path,
        InvalidOptionError,
        "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING",
        configuration={"delta.columnMapping.mode": "name"},
    )


# ---------------------------------------------------------------- what is no directory of Parquet files


def test_missing_and_empty_directories_are_not_found(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError) as missing:
        DeltaTable.convert(str(tmp_path / "none"))
    assert missing.value.error_class == "DELTA_EMPTY_DIRECTORY"
    (tmp_path / "_SUCCESS").touch()
    refused(tmp_path, TableNotFoundError, "DELTA_EMPTY_DIRECTORY", str(tmp_path))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"id,name\n1,a\n",
        lambda data: data[:-5],
        lambda data: data[: len(data) // 2],
        lambda data: b"PAR1" + b"\xff" * 40 + (40).to_bytes(4, "little") + b"PAR1",
    ],
)
def test_files_without_a_footer_are_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    file_bytes = put(tmp_path, "a.parquet", {"id": [1]}).read_bytes()
    for name in ("b.parquet", "c.csv"):
        (tmp_path / name).write_bytes(damage(file_bytes))
    error = refused(tmp_path, DeltaError, "DELTA_FAILED_READ_FILE_FOOTER", "b.parquet, c.csv")
    assert error.message_parameters["files"] == ["b.parquet", "c.csv"]


def test_no_more_than_some_of_many_files_are_named(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.txt").write_text("x")
    refused(tmp_path, DeltaError, "DELTA_FAILED_READ_FILE_FOOTER", "0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 4 more")


def stream_log(directory: Path, batches: dict[str, list[str] | str]) -> None:
    """The log of a stream: for each of its files the paths that it names, or its text."""
    (directory / "_spark_metadata").mkdir(parents=True)
    for name, paths in batches.items():
        lines = [json.dumps({"path": path, "size": 1, "action": "add"}) for path in paths]
        text = paths if isinstance(paths, str) else "\n".join(["v1", *lines])
        (directory / "_spark_metadata" / name).write_text(text)


def test_of_a_stream_s_output_only_committed_files_count(tmp_path: Path) -> None:
    root = tmp_path / "a b"
    for number in range(5):
        put(root, f"p=x%2Fy/{number}.parquet", {"id": [number]})
    url = f"file://{tmp_path}/a%20b/p=x%252Fy"
    batches = {"0": [f"{url}/never.parquet"], "1.compact": [f"{url}/0.parquet", f"{url}/1.parquet"]}
    stream_log(root, {**batches, "2": [f"{url}/3.parquet"], "3": [], ".2.crc": "x"})
    table = DeltaTable.convert(str(root), pa.schema([("p", pa.string())]))
    assert rows(table) == [{"id": number, "p": "x/y"} for number in (0, 1, 3)]


def test_files_that_a_stream_deleted_from_its_log_do_not_count(tmp_path: Path) -> None:
    for number in range(2):
        put(tmp_path, f"{number}.parquet", {"id": [number]})
    deleted = json.dumps({"path": f"file://{tmp_path}/1.parquet", "action": "delete"})
    stream_log(tmp_path, {"0": [f"file://{tmp_path}/0.parquet", f"file://{tmp_path}/1.parquet"], "1": f"v1\n{deleted}"})
    assert rows(DeltaTable.convert(str(tmp_path))) == [{"id": 0}]


@pytest.mark.parametrize(
    ("batches", "part"),
    [
        ({"0": [], "2": []}, "batch 1 is missing"),
        ({"0": "v2\n"}, "of the version b'v2'"),
        ({"0": ""}, "of the version b''"),
        ({"0": "v1\nno json"}, "a line of 0 is no entry"),
        ({"0": "v1\n[]"}, "a line of 0 is no entry"),
        ({"0": ["file:///elsewhere/a.parquet"]}, "file:/elsewhere/a.parquet, which is not below"),
    ],
)
def test_invalid_stream_log_of_a_directory_is_refused(
    tmp_path: Path, batches: dict[str, list[str] | str], part: str
) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    stream_log(tmp_path, batches)
    refused(tmp_path, UnsupportedOperationError, "DELTA_OPERATION_NOT_SUPPORTED", "_spark_metadata", part)


def test_missing_files_of_a_stream_commit_are_an_error(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    stream_log(tmp_path, {"0": [f"file://{tmp_path}/a.parquet", f"file://{tmp_path}/b.parquet"]})
    refused(tmp_path, DeltaError, "DELTA_FILE_NOT_FOUND_DETAILED", "b.parquet")


def test_output_of_a_stream_below_the_directory_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    stream_log(tmp_path / "inner", {"0": []})
    refused(tmp_path, UnsupportedOperationError, "DELTA_OPERATION_NOT_SUPPORTED", "inner/_spark_metadata")


def test_a_table_below_the_directory_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    write_delta(str(tmp_path / "inner"), pa.table({"id": [2]}))
    refused(tmp_path, UnsupportedOperationError, "DELTA_OPERATION_NOT_SUPPORTED", "inner below")


# ---------------------------------------------------------------- partitions


def test_partition_values_are_typed_and_stored_as_by_writers(tmp_path: Path) -> None:
    put(tmp_path, "n=007/t=2024-05-01 10%3A00%3A00/s=a%2Fb%25 c/1.parquet", {"id": [1]})
    put(tmp_path, "N=__HIVE_DEFAULT_PARTITION__/t=2024-05-02/s=%5B/2.parquet", {"id": [2]})
    schema = pa.schema([("n", pa.int32()), ("t", pa.timestamp("us", "UTC")), ("s", pa.string())])
    table = DeltaTable.convert(str(tmp_path), schema, session_timezone="Europe/Berlin")
    values = {file["path"][-9:]: dict(file["partition_values"]) for file in table.files().to_pylist()}
    assert values == {
        "1.parquet": {"n": "7", "t": "2024-05-01T08:00:00.000000Z", "s": "a/b% c"},
        "2.parquet": {"n": None, "t": "2024-05-01T22:00:00.000000Z", "s": "["},
    }
    assert [(row["n"], row["s"]) for row in rows(table)] == [(7, "a/b% c"), (None, "[")]
    assert table.metadata.partition_columns == ("n", "t", "s")


def test_directories_of_partitions_may_begin_with_an_underscore(tmp_path: Path) -> None:
    put(tmp_path, "_p=1/a.parquet", {"id": [1]})
    assert rows(DeltaTable.convert(str(tmp_path), pa.schema([("_p", pa.int64())]))) == [{"id": 1, "_p": 1}]


def test_partition_column_in_files_takes_the_directory_value(tmp_path: Path) -> None:
    put(tmp_path, "day=2024-05-01/a.parquet", {"day": ["other"], "id": [1]})
    table = DeltaTable.convert(str(tmp_path), DAY)
    assert table.to_arrow().to_pylist() == [{"day": date(2024, 5, 1), "id": 1}]
    assert table.struct_type.names == ("day", "id")


NUMBER = "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"


@pytest.mark.parametrize(
    ("path", "schema", "condition", "part"),
    [
        ("day=2024-05-01/a.parquet", None, NUMBER, "Expecting 0 partition column(s): [], but found 1 partition column(s): [day]"),
        ("a.parquet", DAY, NUMBER, "Expecting 1 partition column(s): [day], but found 0"),
        ("day=2024-05-01/sub/a.parquet", DAY, NUMBER, "found 0 partition column(s)"),
        ("day=2024-05-01/x=1/a.parquet", DAY, NUMBER, "[day, x]"),
        ("dai=2024-05-01/a.parquet", DAY, "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME", "dai=2024-05-01/a.parquet"),
        ("day=yesterday/a.parquet", DAY, "DELTA_FAILED_CAST_PARTITION_VALUE", "`yesterday` to date"),
        ("day=/a.parquet", DAY, "DELTA_ILLEGAL_OPTION", "day=/a.parquet has no value"),
    ],
)
def test_directories_unlike_the_partition_schema_are_refused(
    tmp_path: Path, path: str, schema: pa.Schema | None, condition: str, part: str
) -> None:
    put(tmp_path, path, {"id": [1]})
    refused(tmp_path, InvalidOptionError, condition, part, partition_schema=schema)


def test_partitions_of_a_catalog_must_be_the_directories(tmp_path: Path) -> None:
    put(tmp_path, "day=2024-05-01/a.parquet", {"id": [1]})
    put(tmp_path, "day=2024-05-02/a.parquet", {"id": [2]})
    day = StructType((StructField("day", primitive_from_name("date")),))
    incomplete = ConvertRequest(day, catalog_table="t", catalog_partitions=("day=2024-05-01",))
    with pytest.raises(UnsupportedOperationError, match="day=2024-05-02"):
        convert(LocalStore(str(tmp_path)), incomplete)
    complete = ConvertRequest(day, catalog_table="t", catalog_partitions=("day=2024-05-01", "day=2024-05-02"))
    assert convert(LocalStore(str(tmp_path)), complete).version == 0


# ---------------------------------------------------------------- columns


def test_types_of_parquet_become_types_of_delta(tmp_path: Path) -> None:
    columns = {
        "b": pa.array([True]),
        "i8": pa.array([1], pa.int8()),
        "i16": pa.array([1], pa.int16()),
        "i32": pa.array([1], pa.int32()),
        "i64": pa.array([1], pa.int64()),
        "f": pa.array([1.5], pa.float32()),
        "d": pa.array([1.5]),
        "s": pa.array(["x"], pa.large_string()),
        "dict": pa.array(["x"]).dictionary_encode(),
        "bin": pa.array([b"x"]),
        "fixed": pa.array([b"xy"], pa.binary(2)),
        "dec": pa.array([Decimal("1.50")], pa.decimal128(38, 2)),
        "day": pa.array([date(2024, 5, 1)]),
        "at": pa.array([datetime(2024, 5, 1)], pa.timestamp("us", "Europe/Berlin")),
        "local": pa.array([datetime(2024, 5, 1)], pa.timestamp("ms")),
        "json": pa.array(["1"], pa.json_()),
        "inner": pa.array([{"a": 1, "l": [{"b": "x"}]}]),
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    put(tmp_path, "a.parquet", pa.table(columns))
    table = DeltaTable.convert(str(tmp_path))
    assert json.loads(table.metadata.schema_string)["fields"][-2]["type"]["fields"][1]["type"] == {
        "type": "array",
        "elementType": {"type": "struct", "fields": [{"name": "b", "type": "string", "nullable": True, "metadata": {}}]},
        "containsNull": True,
    }
    types = [getattr(f.data_type, "name", None) for f in table.struct_type.fields[:-2]]
    assert types == [
        *("boolean", "byte", "short", "integer", "long", "float", "double", "string", "string", "binary", "binary", None, "date"),
        *("timestamp", "timestamp_ntz", "string"),
    ]
    (row,) = table.to_arrow().to_pylist()
    assert (row["fixed"], row["dec"], row["inner"]) == (b"xy", Decimal("1.50"), {"a": 1, "l": [{"b": "x"}]})


def test_int96_is_a_timestamp_without_statistics_of_its_bounds(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"at": pa.array([datetime(2024, 5, 1)], pa.timestamp("us"))}, use_deprecated_int96_timestamps=True)
    table = DeltaTable.convert(str(tmp_path))
    assert table.schema().field("at").type == pa.timestamp("us", "UTC")
    assert statistics(table)["a.parquet"]["minValues"] == {}


@pytest.mark.parametrize(
    ("values", "part"),
    [
        (pa.array([1], pa.uint8()), "unsigned integer of 8 bits"),
        (pa.nulls(1), "column c is without a type"),
        (pa.array([[None]], pa.list_(pa.null())), "column c.element is without a type"),
        (pa.array([1], pa.uint64()), "unsigned integer of 64 bits"),
        (pa.array([1], pa.time64("us")), "time of day"),
        (pa.array([1], pa.duration("us")), "length of time"),
        (pa.array([1], pa.timestamp("ns")), "nanoseconds"),
        (pa.array([b"x" * 16], pa.uuid()), "UUID"),
        (pa.array([1.5], pa.float16()), "FLOAT16"),
        (pa.array([Decimal(1)], pa.decimal256(50, 2)), "decimal(50,2)"),
        (pa.array([[{"x": 1}]], pa.list_(pa.struct([("x", pa.uint16())]))), "column c.element.x"),
    ],
)
def test_types_that_delta_has_not_are_refused_by_name(tmp_path: Path, values: pa.Array, part: str) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    put(tmp_path, "b.parquet", {"id": [1], "c": values})
    refused(tmp_path, UnsupportedOperationError, "DELTA_UNSUPPORTED_DATA_TYPES", "b.parquet", part)


SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def spark_note(kind: Any) -> dict[bytes, bytes]:
    field = {"name": "id", "type": kind, "nullable": True, "metadata": {"comment": "of a row", "other": 1}}
    return {SPARK_SCHEMA: json.dumps({"type": "struct", "fields": [field]}).encode()}


def test_comments_that_spark_left_are_kept(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", pa.table({"id": [1], "x": [1]}).replace_schema_metadata(spark_note("long")))
    put(tmp_path, "b.parquet", pa.table({"id": [1]}).replace_schema_metadata({SPARK_SCHEMA: b"no schema"}))
    fields = DeltaTable.convert(str(tmp_path)).struct_type.fields
    assert [dict(f.metadata) for f in fields] == [{"comment": "of a row"}, {}]


@pytest.mark.parametrize("kind", ["variant", {"type": "array", "elementType": "variant", "containsNull": True}])
def test_variants_of_spark_are_refused(tmp_path: Path, kind: Any) -> None:
    value = pa.array([{"value": b"", "metadata": b""}])
    column = value if kind == "variant" else pa.array([[{"value": b"", "metadata": b""}]])
    put(tmp_path, "a.parquet", pa.table({"id": column}).replace_schema_metadata(spark_note(kind)))
    refused(tmp_path, UnsupportedOperationError, "DELTA_UNSUPPORTED_DATA_TYPES", "variant")


def merged(directory: Path, *types: pa.DataType) -> DeltaTable:
    for number, kind in enumerate(types):
        values = pa.array([1], pa.int8()).cast(kind) if not pa.types.is_date(kind) else pa.array([1], pa.int32()).cast(kind)
        put(directory, f"{number}.parquet", {"id": [number], "v": values})
    return DeltaTable.convert(str(directory))


@pytest.mark.parametrize(
    ("types", "becomes"),
    [
        ([pa.int8(), pa.int32(), pa.int16()], "integer"),
        ([pa.int16(), pa.int8()], "short"),
    ],
)
def test_types_that_are_stored_alike_are_joined(tmp_path: Path, types: list[pa.DataType], becomes: str) -> None:
    table = merged(tmp_path, *types)
    assert {row["v"] for row in rows(table)} == {1}
    field = json.loads(table.metadata.schema_string)["fields"][1]
    assert (field["type"], field["metadata"]) == (becomes, {})
    assert not table.snapshot.config.feature("typeWidening")


@pytest.mark.parametrize(
    ("types", "becomes", "changes"),
    [
        ([pa.int32(), pa.int64()], "long", [("integer", "long")]),
        ([pa.int64(), pa.int32(), pa.int32()], "long", [("integer", "long")]),
        ([pa.float32(), pa.float64()], "double", [("float", "double")]),
        ([pa.int16(), pa.float64()], "double", [("short", "double")]),
        ([pa.decimal128(5, 2), pa.decimal128(10, 4)], "decimal(10,4)", [("decimal(5,2)", "decimal(10,4)")]),
        ([pa.decimal128(20, 2), pa.decimal128(5, 2)], "decimal(20,2)", [("decimal(5,2)", "decimal(20,2)")]),
        ([pa.date32(), pa.timestamp("us")], "timestamp_ntz", [("date", "timestamp_ntz")]),
    ],
)
def test_lossless_types_are_widened_by_the_feature(
    tmp_path: Path, types: list[pa.DataType], becomes: str, changes: list[tuple[str, str]]
) -> None:
    if pa.date32() in types:
        put(tmp_path, "0.parquet", {"id": [0], "v": pa.array([date(2024, 5, 1)])})
        put(tmp_path, "1.parquet", {"id": [1], "v": pa.array([datetime(2024, 5, 1)], pa.timestamp("us"))})
        table, value = DeltaTable.convert(str(tmp_path)), datetime(2024, 5, 1)
    else:
        table, value = merged(tmp_path, *types), 1  # type: ignore[assignment]
    field = json.loads(table.metadata.schema_string)["fields"][1]
    assert field["type"] == becomes
    assert [(c["fromType"], c["toType"]) for c in field["metadata"]["delta.typeChanges"]] == changes
    assert table.snapshot.config.feature("typeWidening")
    assert {row["v"] for row in rows(table)} == {value}


@pytest.mark.parametrize(
    ("other", "part"),
    [
        ({"id": ["x"]}, "column id is string there and bigint in files before it"),
        ({"id": [1.5]}, "column id is double"),
        ({"id": [[1]]}, "column id is array<bigint>"),
        ({"s": [{"x": "1"}]}, "column s.x is string there and bigint"),
        ({"s": [1]}, "column s is bigint"),
    ],
)
def test_files_that_disagree_are_refused_with_the_file(tmp_path: Path, other: dict[str, Any], part: str) -> None:
    put(tmp_path, "a.parquet", {"id": [1], "s": [{"x": 1}]})
    put(tmp_path, "b.parquet", {"id": [1]})
    put(tmp_path, "c.parquet", other)
    refused(tmp_path, SchemaMismatchError, "DELTA_FAILED_MERGE_SCHEMA_FILE", "of file c.parquet", part)


def test_names_that_differ_in_case_within_a_file_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", pa.table([pa.array([1]), pa.array([2])], names=["id", "ID"]))
    refused(tmp_path, SchemaMismatchError, "DELTA_FAILED_MERGE_SCHEMA_FILE", "a.parquet", "ID")


def test_names_that_differ_in_case_between_files_are_one_column(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1], "s": [{"x": 1}]})
    put(tmp_path, "b.parquet", {"ID": [2], "s": [{"X": 2}]})
    table = DeltaTable.convert(str(tmp_path))
    assert rows(table) == [{"id": 1, "s": {"x": 1}}, {"id": 2, "s": {"x": 2}}]
    assert statistics(table)["b.parquet"]["minValues"] == {"id": 2, "s": {"x": 2}}


def test_names_that_need_column_mapping_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"a b": [1]})
    refused(tmp_path, SchemaMismatchError, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", "a b")


def test_columns_come_in_the_order_in_which_files_bring_them(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", pa.table({"b": [1]}, schema=pa.schema([pa.field("b", pa.int64(), nullable=False)])))
    put(tmp_path, "b.parquet", {"a": [1], "b": [2], "c": [{"y": 1}]})
    put(tmp_path, "c.parquet", {"c": [{"x": 1}]})
    schema = DeltaTable.convert(str(tmp_path)).struct_type
    assert schema.names == ("b", "a", "c")
    assert all(f.nullable for f in schema.fields)
    assert [f.name for f in schema.fields[2].data_type.fields] == ["y", "x"]  # type: ignore[union-attr]


# ---------------------------------------------------------------- statistics


def test_statistics_come_from_footers_over_all_row_groups(tmp_path: Path) -> None:
    columns = {
        "i": [3, None, 1],
        "s": ["a" * 40, "b" * 40, None],
        "f": [1.0, float("nan"), 5.0],
        "none": pa.array([None, None, 7], pa.int32()),
        "st": [{"x": 1}, None, {"x": None}],
        "l": [[1], [], None],
        "b": [True, None, False],
        "at": pa.array([1_001, 2_999, None], pa.timestamp("us", "UTC")),
        "dec": pa.array([Decimal("-1.50"), Decimal("2.25"), None], pa.decimal128(20, 2)),
    }
    put(tmp_path, "a.parquet", columns, row_group_size=1)
    (stats,) = statistics(DeltaTable.convert(str(tmp_path))).values()
    assert stats["numRecords"] == 3
    assert stats["nullCount"] == {"i": 1, "s": 1, "f": 0, "none": 2, "st": {"x": 2}, "b": 1, "at": 1, "dec": 1}
    low = {"i": 1, "s": "a" * 32, "none": 7, "st": {"x": 1}, "at": "1970-01-01T00:00:00.001Z", "dec": -1.5}
    high = {"i": 3, "s": "b" * 32 + "\U0010ffff", "none": 7, "st": {"x": 1}, "at": "1970-01-01T00:00:00.002Z", "dec": 2.25}
    assert (stats["minValues"], stats["maxValues"]) == (low, high)


def test_footer_statistics_are_read_again_for_table_columns_only(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1], "x": [1]})
    put(tmp_path, "b.parquet", {"x": [2], "y": [2], "id": [2]})
    table = DeltaTable.convert(str(tmp_path), configuration={"delta.dataSkippingStatsColumns": "id,y"})
    assert {path: s["minValues"] for path, s in statistics(table).items()} == {
        "a.parquet": {"id": 1},
        "b.parquet": {"id": 2, "y": 2},
    }


def test_columns_that_a_file_lacks_count_as_nulls(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1, 2]})
    put(tmp_path, "b.parquet", {"id": [3], "x": [1], "st": [{"y": 1, "l": [1]}]})
    stats = statistics(DeltaTable.convert(str(tmp_path)))
    assert stats["a.parquet"]["nullCount"] == {"id": 0, "x": 2, "st": {"y": 2, "l": 2}}
    assert stats["b.parquet"]["nullCount"] == {"id": 0, "x": 0, "st": {"y": 0}}


def test_no_more_leaves_than_the_property_says_get_statistics(tmp_path: Path) -> None:
    put(tmp_path, "p=1/a.parquet", {f"c{number}": [number] for number in range(40)})
    schema = pa.schema([("p", pa.int32())])
    table = DeltaTable.convert(str(tmp_path), schema)
    (stats,) = statistics(table).values()
    assert set(stats["minValues"]) == {f"c{number}" for number in range(32)}


def test_statistics_can_be_left_out(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", {"id": [1]})
    table = DeltaTable.convert(str(tmp_path), collect_stats=False)
    assert statistics(table) == {"a.parquet": None}
    assert table.to_arrow(filter="id = 1").num_rows == 1


def test_footers_are_read_once_where_files_have_the_same_columns(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path, f"{number}.parquet", {"id": [number]})
    counts: list[int] = []

    def read(reading: FooterReading, files: pa.Table) -> pa.Table:
        counts.append(files.num_rows)
        return read_here(reading, files)

    assert convert(LocalStore(str(tmp_path)), ConvertRequest(), read).file_count == 5
    assert counts == [1, 5]


def test_many_files_are_read_in_parts_and_stay_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert_module, "_READ_AT_ONCE", 3)
    for number in range(10):
        put(tmp_path, f"{number}.parquet", {"id": [number]})
    table = DeltaTable.convert(str(tmp_path))
    assert {path: s["minValues"]["id"] for path, s in statistics(table).items()} == {f"{n}.parquet": n for n in range(10)}
