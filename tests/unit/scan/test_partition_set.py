"""Which files belong to some partitions, by typed values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from delta_py.errors import CorruptTableError
from delta_py.protocol.actions import AddFile, Metadata, Protocol
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_pruner import with_partition_values
from delta_py.scan.partition_set import PartitionSet
from delta_py.types.char_types import DECLARED_TYPE
from delta_py.types.schema import (
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
)


def config_of(**types: DataType) -> TableConfig:
    fields = tuple(StructField(name, data_type) for name, data_type in types.items())
    return TableConfig(Protocol(1, 2), Metadata("m", schema_to_json(StructType(fields)), tuple(types)))


def files_of(column: str, *texts: str | None) -> pa.RecordBatch:
    return with_partition_values({column: text} for text in texts)


@pytest.mark.parametrize(
    ("data_type", "written", "same", "other_values"),
    [
        (LONG, "1", ["1", "01", "+1", "1.7"], ["0", "2", None, ""]),
        (DOUBLE, "0.0", ["0.0", "-0.0", "0", "0e5"], ["1.0", "NaN", None]),
        (DOUBLE, "NaN", ["NaN", "nan"], ["0.0", "Infinity", None]),
        (STRING, None, [None, ""], ["null", " "]),
        (STRING, "a", ["a"], ["A", "a ", None]),
        (PrimitiveType("binary"), "a", ["a"], ["b", None]),
        (PrimitiveType("boolean"), "true", ["true", "T", "1"], ["false", None]),
        (DATE, "-5877641-06-23", ["-5877641-06-23"], ["+5881580-07-11", "2024-01-01", None]),
        (
            TIMESTAMP,
            "1970-01-01T00:00:00.000000Z",
            ["1970-01-01 01:00:00", "1970-01-01 02:00:00+02:00", "1970-01-01T00:00:00Z"],
            ["1970-01-01 00:00:00", None],
        ),
        (TIMESTAMP, "+294247-01-10T04:00:54.775807Z", ["+294247-01-10T04:00:54.775807Z"], ["+294247-01-10T04:00:54.775806Z"]),
        (PrimitiveType("void"), None, [None], []),
    ],
    ids=str,
)
def test_files_are_told_by_their_values(
    data_type: DataType, written: str | None, same: list[str | None], other_values: list[str | None]
) -> None:
    partitions = PartitionSet.of(config_of(p=data_type), [{"p": written}], "Europe/Paris")
    assert partitions.has(files_of("p", *same, *other_values)).to_pylist() == [True] * len(same) + [False] * len(other_values)


def test_no_files_are_of_no_partition() -> None:
    partitions = PartitionSet.of(config_of(p=LONG), [{"p": "1"}])
    assert partitions.has(files_of("p")).to_pylist() == []
    assert partitions.may_match([]) == []


def test_partition_set_keeps_combinations_and_missing_is_null() -> None:
    written = [{"a": "x", "b": "1", "c": None}, {"a": None, "b": "2"}, {"a": "x", "b": "01", "c": ""}]
    partitions = PartitionSet.of(config_of(a=STRING, b=LONG, c=STRING), written)
    files = [
        {"a": "x", "b": "1", "c": None},
        {"b": "2"},
        {"a": "x", "b": "2", "c": None},
        {"a": None, "b": "1", "c": None},
        {"a": "x", "b": "1", "c": "c"},
        {"a": "y", "b": "1"},
    ]
    assert partitions.has(with_partition_values(files)).to_pylist() == [True, True, False, False, False, False]


def test_char_is_padded_and_names_are_the_physical_ones() -> None:
    metadata = {DECLARED_TYPE: "char(4)", "delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c-1"}
    schema = schema_to_json(StructType((StructField("p", STRING, metadata=metadata),)))
    mapped = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    config = TableConfig(Protocol(2, 5), Metadata("m", schema, ("p",), configuration=mapped))
    partitions = PartitionSet.of(config, [{"c-1": "ab"}])
    assert partitions.has(files_of("c-1", "ab", "ab  ", "ab x", None)).to_pylist() == [True, True, False, False]
    assert str(partitions) == "partition [p=ab]"


def test_invalid_value_is_an_error_or_may_match_for_an_add() -> None:
    config = config_of(p=LONG)
    with pytest.raises(CorruptTableError, match=r"CAST_INVALID_INPUT.*'x'.*column p of type bigint.*cannot be told"):
        PartitionSet.of(config, [{"p": "1"}, {"p": "x"}])
    partitions = PartitionSet.of(config, [{"p": "1"}])
    files = files_of("p", "2", "x")
    with pytest.raises(CorruptTableError, match=r"CAST_INVALID_INPUT.*the file f2 .*'x'"):
        partitions.has(files.append_column("path", pa.array(["f1", "f2"])))
    assert partitions.may_match([AddFile("f", {"p": text}, 1, 1) for text in ("1", "2", "x")]) == [True, False, True]


def test_message_names_the_first_partitions() -> None:
    partitions = PartitionSet.of(config_of(a=STRING, b=LONG), [{"a": "x", "b": str(n)} for n in range(5)])
    shown = " or ".join(f"partition [a=x, b={n}]" for n in range(3))
    assert str(partitions) == f"{shown} or 2 more"
