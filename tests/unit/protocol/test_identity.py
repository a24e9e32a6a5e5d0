"""Identity columns: the meaning of metadata, and marks."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from delta_py.errors import CorruptTableError, DeltaError, InvariantViolationError
from delta_py.protocol.identity_columns import check_new_identities, identity_columns, identity_of, with_marks
from delta_py.types.schema import INTEGER, LONG, STRING, DataType, StructField, StructType

DEEP = orjson.loads("[" * 1000 + "]" * 1000)


def column(start: Any = 1, step: Any = 1, mark: Any = None, explicit: Any = False, data_type: DataType = LONG) -> StructField:
    metadata = {"delta.identity.start": start, "delta.identity.step": step, "delta.identity.allowExplicitInsert": explicit}
    return StructField("id", data_type, True, metadata if mark is None else {**metadata, "delta.identity.highWaterMark": mark})


@pytest.mark.parametrize(
    ("start", "step", "mark", "first"),
    [
        (1, 1, None, 1),
        (1, 1, 7, 8),
        (10, 5, None, 10),
        (10, 5, 20, 25),
        (10, 5, 22, 25),
        (10, 5, 3, 10),
        (-1, -2, None, -1),
        (-1, -2, -5, -7),
        (-1, -2, -6, -7),
        (-1, -2, 4, -1),
        (0, 1, -1, 0),
    ],
)
def test_identity_first_number_is_the_first_behind_the_mark(start: int, step: int, mark: int | None, first: int) -> None:
    identity = identity_of(column(start, step, mark))
    assert identity is not None
    assert identity.number(0) == first
    assert identity.number(3) == first + 3 * step


def test_identity_number_beyond_64_bits_is_an_error() -> None:
    identity = identity_of(column(2**63 - 2, 1))
    assert identity is not None and identity.number(1) == 2**63 - 1
    with pytest.raises(InvariantViolationError, match="run out of numbers"):
        identity.number(2)


@pytest.mark.parametrize(
    "bad", [{"start": "1"}, {"step": 0}, {"step": 2**63}, {"mark": True}, {"explicit": None}, {"start": DEEP}]
)
def test_identity_metadata_without_sense_is_an_error(bad: dict[str, Any]) -> None:
    with pytest.raises(CorruptTableError, match="Identity column id"):
        identity_of(column(**bad))


def test_identity_columns_are_those_with_a_start() -> None:
    schema = StructType((StructField("name", STRING), column(explicit=True)))
    assert [(column_identity.name, column_identity.explicit) for column_identity in identity_columns(schema)] == [("id", True)]


@pytest.mark.parametrize(
    ("step", "mark", "numbers", "expected"),
    [(1, None, [3, 9, 4], 9), (1, 20, [3, 9], 20), (-1, None, [-3, -9], -9), (-1, -20, [-3], -20)],
)
def test_with_marks_goes_to_the_furthest_number(step: int, mark: int | None, numbers: list[int], expected: int) -> None:
    schema = StructType((StructField("name", STRING), column(0, step, mark)))
    changed = with_marks(schema, [("id", number) for number in numbers])
    assert changed.fields[0] == schema.fields[0]
    assert changed.fields[1].metadata["delta.identity.highWaterMark"] == expected


def test_check_new_identities_refuses_what_no_table_can_have() -> None:
    other = StructField("v", LONG)
    check_new_identities(StructType((column(), other)), ["v"])
    generated = StructField("id", LONG, True, {**column().metadata, "delta.generationExpression": "v"})
    for schema, partitions, condition, sql_state in (
        (StructType((column(data_type=INTEGER), other)), [], "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE", "428H2"),
        (StructType((column(), other)), ["id"], "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED", "42601"),
        (StructType((generated, other)), [], "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION", "42613"),
    ):
        with pytest.raises(DeltaError) as caught:
            check_new_identities(schema, partitions)
        assert (caught.value.error_class, caught.value.sql_state) == (condition, sql_state)
