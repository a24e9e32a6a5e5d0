"""Rules that pydelta cannot evaluate and Spark can (hashes, intervals, lambdas, ...): how Spark's results reach the check of the
written rows.

If a save runs in Spark, it may add one hidden boolean column for each such rule. Spark computes it from the row as it will be
written. The Conformer uses this column as the rule's result, and drops it. Without the column the write is refused.

    rules = rules_for_spark(config, frame.columns, "UTC")     # what a save must compute: None when Spark cannot help
    rules.columns[0].name(nonce)                               # the hidden column's name
    HiddenColumns(nonce, names).find(rule, schema, ...)        # the Conformer: the same name, from the schema that it writes with

The name connects a column to its rule. It contains a nonce, which the save draws for each write and passes to the Conformer
separately from the rows, so that no column of a user's frame is mistaken for a hidden one. It also contains a digest of the
rule's text and of the columns that it names with their types, so that results for a table's former rules are not used after the
table has changed. All columns that a rule names are then in the data, with the table's types: they are not cast, or filled by
defaults, numbers or generation after Spark has computed the rule. Defaults that pydelta cannot compute are columns of the data
too, as if the user had provided them.
Protocol: CHECK Constraints; Column Invariants; Generated Columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from delta_py.errors import DeltaError
from delta_py.expressions.evaluation_errors import not_supported
from delta_py.expressions.functions.text_growth import is_growth_error
from delta_py.protocol.identity_columns import identity_of
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.row_constraints import (
    Clock,
    RowCheck,
    RowRule,
    check_rule_lengths,
    condition_text,
    default_value,
    generation_rule,
    in_schema_order,
    names_generated,
    table_rules,
    violation,
)
from delta_py.types.column_rules import DEFAULT, GENERATION
from delta_py.types.names import quoted
from delta_py.types.schema import FieldPositions, Path, StructField, StructType, find_path, type_name

PREFIX = "__pydelta_rule_"  # of the names of hidden columns
_DIGEST_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class RuleColumn:
    """A rule, and the hidden column in which Spark computes it. condition: SQL that Spark evaluates, true for rows that satisfy
    the rule. value: for a generated column, SQL of its value; None for other rules. inputs: the table's columns that the
    condition names. paths: the columns, or fields of them, that the condition names. digest: a hash of the rule and its inputs,
    which is part of the hidden column's name."""

    rule: RowRule
    condition: str
    value: str | None
    inputs: tuple[StructField, ...]
    paths: tuple[Path, ...]
    digest: str

    def name(self, nonce: str) -> str:
        """The hidden column's name. nonce: the random text of the write."""
        return f"{PREFIX}{nonce}_{self.digest}"


@dataclass(frozen=True, slots=True)
class RulesForSpark:
    """What Spark must compute for a save. defaults: columns that the data lacks, and whose defaults Spark computes. columns: the
    rules that Spark computes. inputs: the table's columns that these rules name. Some inputs are missing in the data: those of
    `generated` get the value of their generation expression, those of `absent` are null. partition_columns: the table's partition
    columns."""

    defaults: tuple[StructField, ...]
    columns: tuple[RuleColumn, ...]
    inputs: tuple[StructField, ...]
    generated: tuple[RuleColumn, ...]
    absent: tuple[StructField, ...]
    partition_columns: tuple[str, ...]


# ---------------------------------------------------------------- the save


def rules_for_spark(config: TableConfig, data_columns: Iterable[str], time_zone: str) -> RulesForSpark | None:
    """What Spark must compute so that rows with these columns may be written. None if there is nothing to compute, or if that is
    not enough: for a rule that Spark may not compute, or a rule that names a column which only pydelta can fill."""
    schema, partitions = config.schema, tuple(config.partition_columns)
    data_names = {name.lower() for name in data_columns}
    # Only whether pydelta can evaluate an expression matters here, so any time will do.
    clock = Clock(0, time_zone)
    missing_defaults = (f for f in schema.fields if DEFAULT in f.metadata and f.name.lower() not in data_names)
    defaults = tuple(f for f in missing_defaults if not _can_compute_default(f, clock))
    data_names |= {f.name.lower() for f in defaults}
    generated = {f.name: generation_rule(f) for f in schema.fields if GENERATION in f.metadata}
    try:
        check_rule_lengths(config)
        all_rules = (*generated.values(), *table_rules(config))
        unevaluated_rules = [rule for rule in all_rules if not _is_handled_by_pydelta(rule, schema, clock)]
        columns = {rule: rule_column(rule, schema, partitions) for rule in unevaluated_rules}
        # Spark evaluates the rules before pydelta computes generated columns. So it must compute those that a rule names, too.
        for column in [*columns.values()]:
            for f in column.inputs:
                if f.name in generated and f.name.lower() not in data_names:
                    rule = generated[f.name]
                    columns.setdefault(rule, rule_column(rule, schema, partitions))
    except DeltaError:  # Spark cannot help; the Conformer will refuse the write with an error that names the rule
        return None
    # The columns that Spark needs for the rules, and those of them that the data lacks.
    inputs = {f.name: f for column in columns.values() for f in column.inputs}
    missing_inputs = [f for name, f in inputs.items() if name.lower() not in data_names]
    absent = tuple(f for f in missing_inputs if f.name not in generated)
    # Spark sees null in an absent column. That is wrong for a column that pydelta fills, or without which it refuses the rows.
    if not (columns or defaults) or any(DEFAULT in f.metadata or identity_of(f) or not f.nullable for f in absent):
        return None
    generated_inputs = tuple(columns[generated[f.name]] for f in missing_inputs if f.name in generated)
    return RulesForSpark(defaults, tuple(columns.values()), tuple(inputs.values()), generated_inputs, absent, partitions)


def _can_compute_default(column: StructField, clock: Clock) -> bool:
    """Whether pydelta can compute the column's default."""
    try:
        default_value(column, clock)
    except DeltaError:
        return False
    return True


def _is_handled_by_pydelta(rule: RowRule, schema: StructType, clock: Clock) -> bool:
    """Whether pydelta handles the rule itself: it can evaluate the rule, or it refuses the rule because texts would grow so much
    that Spark should not compute it either."""
    try:
        RowCheck(rule, schema, clock)
    except DeltaError as error:
        return is_growth_error(error)
    return True


def rule_column(rule: RowRule, schema: StructType, partition_columns: Sequence[str]) -> RuleColumn:
    """The rule, and the hidden column in which Spark computes it. schema: the table's. Raises DeltaError for a rule that Spark
    may not compute."""
    from delta_py.expressions.sql_text.spark_rules import checked_sql, spark_type_name  # imports sqlglot

    checked = checked_sql(rule.sql, schema)
    condition, value, paths = checked.text, None, set(checked.columns)
    if rule.kind == "generated":
        target = schema.find(rule.name)
        assert target is not None
        _check_needs_no_generated(rule, checked.columns, schema)
        value = f"cast({checked.text} AS {spark_type_name(target.data_type)})"
        # Data that has the column must have the value of its expression; null equals null.
        condition = f"({quoted(target.name)} <=> {value})"
        paths.add((target.name,))
    ordered_paths = tuple(in_schema_order(paths, schema))
    inputs = tuple(find_path(schema, (name,))[0] for name in dict.fromkeys(path[0] for path in ordered_paths))
    described_inputs = [[f.name, type_name(f.data_type), f.name in partition_columns] for f in inputs]
    digested_text = json.dumps([rule.kind, rule.name, rule.sql, described_inputs])
    digest = hashlib.sha256(digested_text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return RuleColumn(rule, condition, value, inputs, ordered_paths, digest)


def _check_needs_no_generated(rule: RowRule, columns: Iterable[Path], schema: StructType) -> None:
    """Raise ExpressionError if the generation expression names another generated column, which Delta does not allow."""
    if names_generated(columns, schema):
        raise not_supported(f"The generation expression on column {rule.name}, which needs a generated column,")


# ---------------------------------------------------------------- the Conformer


@dataclass(frozen=True)
class HiddenColumns:
    """Finds the hidden columns of the data, which hold the results of rules. nonce: the write's random text, which is part of
    their names; None if there are no hidden columns. names: the names of all columns of the data."""

    nonce: str | None
    names: tuple[str, ...]

    def is_hidden(self, name: str) -> bool:
        """Whether a column of the data holds results of a rule, and is not the table's."""
        return self.nonce is not None and name.startswith(f"{PREFIX}{self.nonce}_")

    def find(self, rule: RowRule, schema: StructType, partition_columns: Sequence[str]) -> HiddenCheck | None:
        """The check of the rule by a hidden column; None if the data has no such column, and pydelta must evaluate the rule."""
        if self.nonce is None or rule.kind == "replace_where":
            return None
        try:
            column = rule_column(rule, schema, partition_columns)
        except DeltaError:
            return None
        place = self._positions.exact.get(column.name(self.nonce))
        # A column of the rule that the data lacks is filled later, so Spark has not seen its values.
        if place is None or any(self._positions.find(f.name) is None for f in column.inputs):
            return None
        return HiddenCheck(column, place)

    @cached_property
    def _positions(self) -> FieldPositions:
        return FieldPositions.of(self.names)


@dataclass(frozen=True, slots=True)
class HiddenCheck:
    """A rule whose results Spark has computed: booleans in the data's column at position `place`. As with RowCheck, false and
    null break the rule."""

    column: RuleColumn
    place: int

    def check(self, conformed: pa.RecordBatch, batch: pa.RecordBatch) -> None:
        """Check the rule's results. conformed: the rows as they are written, for the error. batch: the same rows of the data,
        with the hidden column. Raises InvariantViolationError as RowCheck."""
        answers = batch.column(self.place)
        assert pa.types.is_boolean(answers.type), f"the answers to the rule {self.column.rule.name} are {answers.type}"
        if answers.true_count < len(answers):
            raise violation(self.column.rule, condition_text(self.column.rule), self.column.paths, conformed, answers)
