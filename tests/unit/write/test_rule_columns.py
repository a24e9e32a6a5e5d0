"""Rules that Spark computes: which ones, how their answers are bound to them, and that no other answers are accepted."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from delta_py.definition.request import WriteRequest
from delta_py.errors import DeltaError, InvariantViolationError, UnsupportedTableFeatureError
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.table_config import TableConfig
from delta_py.row_changes.write_plans import plan_change
from delta_py.row_rules.conform import Conformer
from delta_py.row_rules.hidden_rule_columns import PREFIX, HiddenColumns, RuleColumn, rule_column, rules_for_spark
from delta_py.row_rules.row_constraints import RowRule
from delta_py.row_rules.write_state import write_state
from delta_py.storage.local import LocalStore
from delta_py.types.schema import BOOLEAN, INTEGER, LONG, STRING, DataType, StructField, StructType, schema_to_json

HASHED = RowRule("check", "hashed", "hash(id) <> 0")
IDENTITY = {"start": 1, "step": 1, "allowExplicitInsert": True}
SCHEMA = StructType((StructField("id", LONG), StructField("t", STRING)))


def config(*fields: StructField, partition_by: tuple[str, ...] = (), **checks: str) -> TableConfig:
    properties = {f"delta.constraints.{name}": sql for name, sql in checks.items()}
    schema = StructType(fields or SCHEMA.fields)
    return TableConfig(Protocol(1, 4), Metadata("t", schema_to_json(schema), partition_by, properties))


def generated(name: str, kind: DataType, sql: str) -> StructField:
    return StructField(name, kind, True, {"delta.generationExpression": sql})


def answers_of(table: TableConfig, nonce: str, rule: RowRule = HASHED) -> str:
    return rule_column(rule, table.schema, table.partition_columns).name(nonce)


def conform(table: TableConfig, nonce: str | None, rows: Mapping[str, pa.Array]) -> list[dict[str, Any]]:
    """As a write in Spark does: the state from the data's columns, then the rows."""
    batch = pa.RecordBatch.from_pydict(dict(rows))
    state = write_state(table, LocalStore("/t"), 0, hidden=HiddenColumns(nonce, tuple(batch.schema.names)))
    conformed_rows: list[dict[str, Any]] = (
        Conformer(dataclasses.replace(state, rule_nonce=nonce), batch.schema).conform(batch).batch.to_pylist()
    )
    return conformed_rows


# ---------------------------------------------------------------- rules of hostile tables


COSTLY = {"text": "length(rpad('x', 2147483647, 'y')) > 0", "list": "hash(id) in (" + "1, " * 100_000 + "1)"}


@pytest.mark.parametrize("sql", COSTLY.values(), ids=COSTLY)
def test_rule_of_excessive_cost_is_refused_and_not_sent_to_spark(sql: str) -> None:
    table = config(costly=sql)
    with pytest.raises(UnsupportedTableFeatureError):
        write_state(table, "/t", 0)
    assert rules_for_spark(table, ["id", "t"], "UTC") is None


# ---------------------------------------------------------------- the gate


def test_answers_are_taken_for_the_rule_and_dropped() -> None:
    table = config(hashed=HASHED.sql)
    rows = {"id": pa.array([1, 2]), answers_of(table, "n"): pa.array([True, True])}
    assert conform(table, "n", rows) == [{"id": 1, "t": None}, {"id": 2, "t": None}]


@pytest.mark.parametrize("answer", [False, None])
def test_false_or_null_answer_breaks_the_rule_with_row_values(answer: bool | None) -> None:
    table = config(hashed=HASHED.sql)
    rows = {"id": pa.array([1, 2]), answers_of(table, "n"): pa.array([True, answer], pa.bool_())}
    with pytest.raises(InvariantViolationError) as caught:
        conform(table, "n", rows)
    assert "CHECK constraint hashed (hash(id) <> 0) violated by row with values:\n - id : 2\n 1 of 2 rows" in str(caught.value)
    assert caught.value.message_parameters["values"] == {"id": "2"}


@pytest.mark.parametrize(
    ("nonce", "name"),
    [
        (None, answers_of(config(), "n")),  # the save has passed no nonce
        ("n", answers_of(config(), "m")),  # of another write
        ("n", answers_of(config(), "n", RowRule("check", "hashed", "hash(id) = 0"))),  # to an earlier rule of that name
        ("n", answers_of(config(StructField("id", INTEGER)), "n")),  # computed from another type
        ("n", answers_of(config(StructField("id", LONG), partition_by=("id",)), "n")),  # from a former partition column
        ("n", f"{PREFIX}n_"),
        ("n", "t"),
    ],
)
def test_write_without_answers_for_its_rule_is_refused_by_name(nonce: str | None, name: str) -> None:
    rows = {"id": pa.array([1]), name: pa.array([True])}
    with pytest.raises(UnsupportedTableFeatureError, match="the CHECK constraint hashed"):
        conform(config(hashed=HASHED.sql), nonce, rows)


def test_answers_without_their_columns_are_refused() -> None:
    """The conformer would fill them in itself, after Spark has computed the rule."""
    table = config(hashed=HASHED.sql)
    with pytest.raises(UnsupportedTableFeatureError, match="hashed"):
        conform(table, "n", {"t": pa.array(["a"]), answers_of(table, "n"): pa.array([True])})


def test_answers_that_no_rule_asks_for_any_more_are_dropped() -> None:
    assert conform(config(), "n", {"id": pa.array([1]), answers_of(config(), "n"): pa.array([False])}) == [{"id": 1, "t": None}]


def test_hidden_columns_do_not_join_the_table_by_merge_schema() -> None:
    class Table:
        """The part of a snapshot that plan_change uses."""

        config = config(hashed=HASHED.sql)
        metadata, protocol, schema = config.metadata, config.protocol, config.schema
        store, version = LocalStore("/t"), 0
        clustering_domain = staticmethod(lambda: None)

    name = answers_of(Table.config, "n")
    data = StructType((StructField("id", LONG), StructField("new", LONG), StructField(name, BOOLEAN)))
    plan = plan_change(Table(), data, WriteRequest("append", merge_schema=True, rule_nonce="n"))  # type: ignore[arg-type]
    assert plan.state.schema.names == ("id", "t", "new")
    with pytest.raises(DeltaError):
        plan_change(Table(), data, WriteRequest("append", merge_schema=True))  # type: ignore[arg-type]


# ---------------------------------------------------------------- the save


def columns_of(table: TableConfig, *data: str) -> list[RuleColumn] | None:
    columns = rules_for_spark(table, data, "UTC")
    return None if columns is None else [*columns.columns]


def test_only_rules_that_the_gate_cannot_evaluate_are_for_spark() -> None:
    rule_columns = columns_of(config(plain="id > 0", hashed=HASHED.sql), "ID", "t")
    assert rule_columns is not None
    assert [column.rule for column in rule_columns] == [HASHED]
    assert columns_of(config(plain="id > 0"), "id", "t") is None


def test_missing_generated_column_has_a_value_and_condition() -> None:
    table = config(*SCHEMA.fields, generated("g", INTEGER, "hash(id)"), hashed="hash(g) <> 0")
    rule_columns = rules_for_spark(table, ["id"], "UTC")
    assert rule_columns is not None
    assert [column.value for column in rule_columns.generated] == ["cast(system.builtin.`hash`(`id`) AS INT)"]
    assert rule_columns.columns[0].condition == "(`g` <=> cast(system.builtin.`hash`(`id`) AS INT))"
    columns_with_g = rules_for_spark(table, ["id", "g"], "UTC")
    assert columns_with_g is not None
    assert columns_with_g.generated == ()


def test_generated_column_in_a_rule_is_computed_by_spark() -> None:
    rule_columns = rules_for_spark(config(*SCHEMA.fields, generated("g", LONG, "id + 1"), hashed="hash(g) <> 0"), ["id"], "UTC")
    assert rule_columns is not None
    assert [column.rule.name for column in rule_columns.generated] == ["g"]


@pytest.mark.parametrize(
    "fields",
    [
        (StructField("id", LONG, True, {"CURRENT_DEFAULT": "7"}),),
        (StructField("id", LONG, True, {f"delta.identity.{key}": value for key, value in IDENTITY.items()}),),
        (StructField("id", LONG, False),),
        (StructField("x", LONG), generated("id", LONG, "reflect('a', 'b')")),
        (generated("g", LONG, "xxhash64(x)"), StructField("x", LONG), generated("id", LONG, "hash(g)")),
    ],
)
def test_rule_on_a_column_that_only_pydelta_fills_skips_spark(fields: tuple[StructField, ...]) -> None:
    table = config(StructField("other", LONG), *fields, hashed=HASHED.sql)
    assert columns_of(table, "other", "x") is None


def test_columns_that_are_missing_and_null_are_told() -> None:
    rule_columns = rules_for_spark(config(hashed="hash(id, t) <> 0"), ["T"], "UTC")
    assert rule_columns is not None
    assert [f.name for f in rule_columns.absent] == ["id"]
    assert [f.name for f in rule_columns.inputs] == ["id", "t"]
