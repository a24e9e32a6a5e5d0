"""Rules on rows: which rows satisfy them, which break them, and the text of the error."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from delta_py.errors import ExpressionError, InvariantViolationError, SchemaMismatchError, UnsupportedTableFeatureError
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.conform import Conformer
from delta_py.row_rules.row_constraints import RowRule
from delta_py.row_rules.write_state import WriteState, write_state
from delta_py.storage.local import LocalStore
from delta_py.types.schema import (
    BINARY,
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    schema_to_json,
    to_arrow_schema,
)

AB = StructType((StructField("a", INTEGER), StructField("b", INTEGER)))


def column(name: str, data_type: DataType, nullable: bool = True, **metadata: Any) -> StructField:
    return StructField(name, data_type, nullable, {key.replace("__", "."): value for key, value in metadata.items()})


def config(schema: StructType, **checks: str) -> TableConfig:
    properties = {f"delta.constraints.{name}": sql for name, sql in checks.items()}
    return TableConfig(Protocol(1, 4), Metadata("t", schema_to_json(schema), (), properties))


def state_of(schema: StructType, **checks: str) -> WriteState:
    return write_state(config(schema, **checks), LocalStore("/t"), 0)


def conform(state: WriteState, rows: Sequence[Mapping[str, Any]], schema: StructType | None = None) -> list[dict[str, Any]]:
    batch = pa.RecordBatch.from_pylist(rows, to_arrow_schema(schema or state.schema))
    conformed_rows: list[dict[str, Any]] = Conformer(state, batch.schema).conform(batch).batch.to_pylist()
    return conformed_rows


def fields(schema: StructType, *names: str) -> StructType:
    return StructType(tuple(f for f in schema.fields if f.name in names))


# ---------------------------------------------------------------- CHECK constraints and invariants


def test_check_constraint_that_holds_changes_nothing() -> None:
    rows = [{"a": 1, "b": 2}, {"a": 5, "b": None}]
    assert conform(state_of(AB, positive="a > 0"), rows) == rows


def test_broken_check_names_its_sql_values_and_number_of_rows() -> None:
    rows = [{"a": 1, "b": 2}, {"a": -1, "b": 3}, {"a": -2, "b": 4}]
    with pytest.raises(InvariantViolationError) as caught:
        conform(state_of(AB, positive="a > 0 AND b < 10"), rows)
    assert caught.value.error_class == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert "CHECK constraint positive (a > 0 AND b < 10) violated by row with values:\n - a : -1\n - b : 3\n" in str(caught.value)
    assert "2 of 3 rows" in str(caught.value)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.message_parameters["values"] == {"a": "-1", "b": "3"}
    assert copy.message_parameters["row_count"] == 2


def test_check_constraint_that_is_null_is_broken() -> None:
    with pytest.raises(InvariantViolationError, match="a : null"):
        conform(state_of(AB, positive="a > 0"), [{"a": None, "b": 1}])


def test_check_on_a_missing_column_sees_null() -> None:
    with pytest.raises(InvariantViolationError, match="b : null"):
        conform(state_of(AB, small="b < 10"), [{"a": 1}], fields(AB, "a"))


def test_check_constraint_sees_the_value_after_the_cast() -> None:
    state = state_of(AB, whole="a = 1")
    batch = pa.record_batch({"a": [1.9]})
    assert Conformer(state, batch.schema).conform(batch).batch.to_pylist() == [{"a": 1, "b": None}]


def test_check_that_fails_for_a_row_names_the_rule_and_cause() -> None:
    with pytest.raises(ExpressionError, match=r"the CHECK constraint share.*zero") as caught:
        conform(state_of(AB, share="10 / a > 1"), [{"a": 0, "b": 1}])
    assert caught.value.error_class == "DIVIDE_BY_ZERO"


def test_check_constraint_with_the_time_of_the_write_is_asked() -> None:
    schema = StructType((StructField("at", TIMESTAMP),))
    state = state_of(schema, past="at <= current_timestamp()")
    assert len(conform(state, [{"at": datetime(2020, 1, 1, tzinfo=UTC)}])) == 1
    with pytest.raises(InvariantViolationError, match="9999-01-01"):
        conform(state, [{"at": datetime(9999, 1, 1, tzinfo=UTC)}])


def test_invariants_of_columns_and_of_fields_in_structs_are_kept() -> None:
    def invariant(sql: str) -> str:
        return json.dumps({"expression": {"expression": sql}})

    inner = StructType((column("x", INTEGER, delta__invariants=invariant("s.x < 3")),))
    schema = StructType((column("a", INTEGER, delta__invariants=invariant("a > 3")), StructField("s", inner)))
    state = state_of(schema)
    assert conform(state, [{"a": 4, "s": {"x": 1}}]) == [{"a": 4, "s": {"x": 1}}]
    with pytest.raises(InvariantViolationError, match=r"Invariant of a \(a > 3\).*\n - a : 1"):
        conform(state, [{"a": 1, "s": {"x": 1}}])
    with pytest.raises(InvariantViolationError, match=r"Invariant of s\.x .*\n - s\.x : 7"):
        conform(state, [{"a": 4, "s": {"x": 7}}])


@pytest.mark.parametrize(("data_type", "empty"), [(STRING, ""), (BINARY, b"")])
def test_empty_text_of_a_partition_column_is_null_for_the_rules(data_type: DataType, empty: Any) -> None:
    schema = StructType((StructField("p", data_type), StructField("a", INTEGER)))
    state = WriteState(LocalStore("/t"), 0, schema, ("p",), rules=(RowRule("check", "given", "p IS NOT NULL OR a = 0"),))
    assert conform(state, [{"p": empty, "a": 0}]) == [{"p": None, "a": 0}]
    with pytest.raises(InvariantViolationError, match="p : null"):
        conform(state, [{"p": empty, "a": 1}])


def test_no_rows_break_no_rule() -> None:
    assert conform(state_of(AB, never="1 = 0"), []) == []


def test_dates_that_python_cannot_hold_are_shown_all_the_same() -> None:
    schema = StructType((StructField("s", StructType((StructField("d", DATE),))),))
    far = pa.StructArray.from_arrays([pa.array([4_000_000], pa.int32()).cast(pa.date32())], names=["d"])
    batch = pa.record_batch([far], ["s"])
    for sql in ("s IS NULL", "s.d < date'2024-01-01'"):
        with pytest.raises(InvariantViolationError, match=r"- s.*: .*(12921-|4000000)"):
            Conformer(state_of(schema, old=sql), batch.schema).conform(batch)


def test_long_values_are_cut_in_the_message() -> None:
    schema = StructType((StructField("t", STRING),))
    with pytest.raises(InvariantViolationError) as caught:
        conform(state_of(schema, short="length(t) < 5"), [{"t": "x" * 10_000}])
    assert len(str(caught.value)) < 1_000


# ---------------------------------------------------------------- replaceWhere


@pytest.mark.parametrize(("value", "expected_text"), [(2, "a : 2"), (None, "a : null")])
def test_row_outside_of_replace_where_is_refused_with_its_values(value: int | None, expected_text: str) -> None:
    state = WriteState(LocalStore("/t"), 0, AB, replace_where="a = 1")
    assert conform(state, [{"a": 1, "b": 2}]) == [{"a": 1, "b": 2}]
    with pytest.raises(InvariantViolationError, match=expected_text) as caught:
        conform(state, [{"a": 1, "b": 2}, {"a": value, "b": 7}])
    assert caught.value.error_class == "DELTA_REPLACE_WHERE_MISMATCH"
    assert caught.value.sql_state == "44000"
    assert "a = 1" in caught.value.message


def test_invalid_replace_where_is_an_error_before_any_row() -> None:
    for sql, error in (("soundex(a) = 'x'", ExpressionError), ("nope = 1", SchemaMismatchError)):
        with pytest.raises(error):
            Conformer(WriteState(LocalStore("/t"), 0, AB, replace_where=sql), to_arrow_schema(AB))


# ---------------------------------------------------------------- generated columns

GENERATED = StructType(
    (
        StructField("at", TIMESTAMP),
        column("day", DATE, delta__generationExpression="CAST(at AS DATE)"),
        StructField("id", INTEGER),
        column("next", LONG, nullable=False, delta__generationExpression="id + 1"),
    )
)
NOON = datetime(2024, 1, 2, 3, 30, tzinfo=UTC)


def test_missing_generated_columns_are_computed_in_their_type() -> None:
    computed = conform(state_of(GENERATED), [{"at": NOON, "id": 1}], fields(GENERATED, "at", "id"))
    assert computed == [{"at": NOON, "day": date(2024, 1, 2), "id": 1, "next": 2}]


def test_generated_column_is_computed_in_the_sessions_time_zone() -> None:
    state = WriteState(LocalStore("/t"), 0, GENERATED, time_zone="America/New_York")
    assert conform(state, [{"at": NOON, "id": 1}], fields(GENERATED, "at", "id"))[0]["day"] == date(2024, 1, 1)


def test_rules_turn_a_time_into_the_sessions_wall_clock_once() -> None:
    """At one in the morning in New York; converted twice, it would be eight in the evening before."""
    at, zone = datetime(2024, 1, 2, 6, 0, tzinfo=UTC), "America/New_York"
    schema = StructType(
        (
            StructField("at", TIMESTAMP),
            column("day", DATE, delta__generationExpression="CAST(at AS DATE)"),
            column("hour", INTEGER, delta__generationExpression="hour(at)"),
            column("began", DATE, CURRENT_DEFAULT="CAST(current_timestamp() AS DATE)"),
        )
    )
    micros = int(at.timestamp() * 1_000_000)
    rules = (RowRule("check", "early", "hour(at) = 1 AND at > '2024-01-02 00:30:00'"),)
    state = WriteState(LocalStore("/t"), 0, schema, time_zone=zone, write_micros=micros, rules=rules, replace_where="day(at) = 2")
    row = {"at": at, "day": date(2024, 1, 2), "hour": 1, "began": date(2024, 1, 2)}
    assert conform(state, [{"at": at}], fields(schema, "at")) == [row]
    assert conform(state, [row]) == [row]


def test_generated_column_accepts_its_right_value_or_nulls() -> None:
    rows = [{"at": NOON, "day": date(2024, 1, 2), "id": 1, "next": 2}, {"at": None, "day": None, "id": 3, "next": 4}]
    assert conform(state_of(GENERATED), rows) == rows


@pytest.mark.parametrize("day", [date(2024, 1, 3), None])
def test_generated_column_refuses_another_value_and_shows_it(day: date | None) -> None:
    with pytest.raises(InvariantViolationError) as caught:
        conform(state_of(GENERATED), [{"at": NOON, "day": day, "id": 1, "next": 2}])
    assert caught.value.error_class == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert "Generated Column (day <=> (CAST(at AS DATE)))" in caught.value.message
    assert f" - day : {day or 'null'}" in caught.value.message


def test_generated_column_whose_value_is_null_keeps_not_null() -> None:
    with pytest.raises(InvariantViolationError, match="next"):
        conform(state_of(GENERATED), [{"at": NOON, "id": None}], fields(GENERATED, "at", "id"))


def test_generated_column_that_overflows_says_so() -> None:
    with pytest.raises(ExpressionError, match="the generation expression on column next"):
        conform(state_of(GENERATED), [{"at": NOON, "id": 2**31 - 1}], fields(GENERATED, "at", "id"))


# ---------------------------------------------------------------- defaults


def test_default_fills_a_column_that_the_data_lacks_and_no_null() -> None:
    schema = StructType(
        (
            StructField("id", INTEGER),
            column("n", INTEGER, nullable=False, CURRENT_DEFAULT="7"),
            column("t", STRING, CURRENT_DEFAULT="'x' || 'y'"),
            column("v", VARIANT, CURRENT_DEFAULT="null"),
        )
    )
    state = state_of(schema)
    assert conform(state, [{"id": 1}], fields(schema, "id")) == [{"id": 1, "n": 7, "t": "xy", "v": None}]
    assert conform(state, [{"id": 1, "n": 3, "t": None}], fields(schema, "id", "n", "t"))[0]["t"] is None


def test_current_default_is_the_write_start_in_session_zone() -> None:
    schema = StructType(
        (
            StructField("id", INTEGER),
            column("at", TIMESTAMP, CURRENT_DEFAULT="current_timestamp()"),
            column("day", DATE, CURRENT_DEFAULT="current_date()"),
        )
    )
    micros = int(NOON.timestamp() * 1_000_000)
    state = WriteState(LocalStore("/t"), 0, schema, time_zone="America/New_York", write_micros=micros)
    assert conform(state, [{"id": 1}], fields(schema, "id")) == [{"id": 1, "at": NOON, "day": date(2024, 1, 1)}]


def test_unsupported_default_refuses_only_data_without_column() -> None:
    schema = StructType((StructField("id", INTEGER), column("t", STRING, CURRENT_DEFAULT="uuid()")))
    state = state_of(schema)
    assert conform(state, [{"id": 1, "t": "a"}]) == [{"id": 1, "t": "a"}]
    with pytest.raises(UnsupportedTableFeatureError, match=r"default of column t.*uuid"):
        conform(state, [{"id": 1}], fields(schema, "id"))


# ---------------------------------------------------------------- lengths


def char(name: str, data_type: DataType, ddl: str) -> StructType:
    return StructType((StructField(name, data_type, True, {"__CHAR_VARCHAR_TYPE_STRING": ddl}),))


INNER = StructType((StructField("a", STRING), StructField("b", ArrayType(STRING))))
TEXTS = [
    (char("c", STRING, "char(3)"), ["ab", "äöü", None, ""], "abcd", "c is char(3)"),
    (char("c", STRING, "varchar(3)"), ["ab", "ab "], "ab  ", "c is varchar(3)"),
    (char("c", INNER, "struct<a:char(2),b:array<varchar(1)>>"), [{"a": "ab", "b": ["a"]}, None], {"a": "abc", "b": None}, "c.a"),
    (char("c", INNER, "struct<a:char(2),b:array<varchar(1)>>"), [], {"a": None, "b": ["a", "ab"]}, "c.b.element"),
    (char("c", MapType(STRING, STRING), "map<varchar(2),char(1)>"), [[("ab", "a")], None], [("abc", None)], "c.key"),
    (char("c", MapType(STRING, STRING), "map<varchar(2),char(1)>"), [], [("a", "ab")], "c.value"),
]


@pytest.mark.parametrize(("schema", "short", "long", "expected_text"), TEXTS)
def test_texts_keep_their_declared_length_at_any_depth(
    schema: StructType, short: list[Any], long: Any, expected_text: str
) -> None:
    state = state_of(schema)
    rows = [{"c": value} for value in short]
    assert conform(state, rows) == rows
    with pytest.raises(InvariantViolationError, match="exceeds char/varchar type length limitation") as caught:
        conform(state, [*rows, {"c": long}])
    assert caught.value.error_class == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    assert expected_text in caught.value.message


def test_rules_see_char_texts_as_they_are_written_and_not_padded() -> None:
    state = state_of(char("c", STRING, "char(5)"), known="c = 'ab'")
    assert conform(state, [{"c": "ab"}]) == [{"c": "ab"}]
