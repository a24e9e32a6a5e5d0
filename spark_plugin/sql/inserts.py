"""INSERT: the rows of its query, under the table's columns and in their types, on the road that saved DataFrames go.

    INSERT INTO shop.sales (id, price) VALUES (3, 1.5)
    INSERT INTO shop.sales BY NAME SELECT ...
    INSERT OVERWRITE shop.sales PARTITION (day = '2024-05-01') SELECT ...
    INSERT INTO shop.sales REPLACE WHERE day >= '2024-05-01' SELECT ...
    INSERT INTO shop.sales REPLACE USING (id) SELECT ...
    INSERT INTO shop.sales AS t REPLACE ON t.id = s.id AND t.day > s.day (SELECT ...) AS s

What a column gets that no value is given for, the write decides: its default, its expression, its next number, or null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DateType, MapType, NumericType, StructField, StructType, TimestampNTZType

from delta_py.commands.write import has_own_value
from delta_py.errors import InvalidOptionError, InvariantViolationError, SchemaMismatchError, UnsupportedOperationError
from delta_py.expressions import tree
from delta_py.expressions.to_sql import to_sql
from delta_py.expressions.tree import And, Cast, Comparison, Literal
from delta_py.protocol.names import joined_name, quoted
from delta_py.protocol.schema import STRING
from delta_py.protocol.schema import StructField as DeltaField
from delta_py.protocol.table_config import TableConfig
from delta_py.write.evolution import keeps_type, takes_type
from spark_plugin.convert import find_field, from_spark_schema, to_spark_schema
from spark_plugin.dataframe_api import named_tables
from spark_plugin.dataframe_api.batch_save import Save
from spark_plugin.dml.analyzer import analyzer_of
from spark_plugin.dml.column_defaults import default_text
from spark_plugin.dml.jobs import newest
from spark_plugin.dml.matching import Matching
from spark_plugin.dml.store_assignment import Assigning, Typed, overflows_as_the_gates
from spark_plugin.dml.target_names import Alias
from spark_plugin.options.settings import check_condition_text, conf, is_case_sensitive
from spark_plugin.sql.changes import alias_of, is_among
from spark_plugin.sql.results import nothing
from spark_plugin.sql.targets import Target, find_target
from spark_plugin.sql_definitions import ParsedInsert, ParsedReplaceOn, WrittenReplaceOn, parsed_insert
from spark_plugin.sql_internals import ParsedPlan, ParsedTarget

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PARTITION_MODE = "partitionOverwriteMode"
_VALUE = "__pydelta_value_of_"


def insert_rows(spark: SparkSession, plan: ParsedPlan, text: str) -> DataFrame | None:
    """Returns a frame without columns, as Spark does. Raises what saving a DataFrame raises; SchemaMismatchError
    (DELTA_INSERT_COLUMN_ARITY_MISMATCH) for another number of values than of columns, and InvariantViolationError
    (DELTA_INSERT_COLUMN_MISMATCH) for a NOT NULL column that is left out."""
    insert = parsed_insert(plan)
    target = None if insert is None else find_target(spark, insert.target.parts)
    if insert is None or target is None:
        return None
    alias = () if insert.replaces_on is None else _alias(spark, insert, target, text)
    return write_insert(spark, target, insert, alias)


def write_insert(spark: SparkSession, target: Target, insert: ParsedInsert, alias: Alias) -> DataFrame:
    """The same once it is parsed. alias: by what the condition of REPLACE ON may call the table."""
    table = _Table.of(spark, target)
    _check(table, insert, is_case_sensitive(spark))
    frame, columns = _arranged(spark, table, insert)
    if insert.replaces_on is None:
        frame = frame.select(*(column.alias(name) for name, column in columns))
    save = Save(frame, "append", {name.lower(): (name, value) for name, value in insert.options.items()}).checked()
    if insert.evolves:
        save = save.with_options(mergeSchema="true")
    if insert.replaces_on is None:
        save = _replacing(spark, table, insert, save)
    else:
        save = _replacing_on(spark, insert.replaces_on, save, columns, alias)
    with overflows_as_the_gates("CAST_OVERFLOW_IN_TABLE_INSERT"):
        target.write(save)
    return nothing(spark)


_WIDENED = (NumericType, DateType, TimestampNTZType)
"""Types that may become wider, and what they become."""


@dataclass(frozen=True, slots=True)
class _Table:
    """The table as it is now. config: as the log has it. schema: its columns as Spark has them."""

    target: Target
    config: TableConfig
    schema: StructType

    @classmethod
    def of(cls, spark: SparkSession, target: Target) -> _Table:
        config = newest(spark, target.place).config
        return cls(target, config, to_spark_schema(config.schema))

    @property
    def fields(self) -> Sequence[DeltaField]:
        return self.config.schema.fields

    @property
    def partition_columns(self) -> Sequence[str]:
        return self.config.partition_columns


def _check(table: _Table, insert: ParsedInsert, case_sensitive: bool) -> None:
    if insert.if_not_exists:
        raise UnsupportedOperationError(
            "INSERT OVERWRITE ... IF NOT EXISTS: Delta tables have no partitions that a catalog knows of; nothing was written. "
            "Leave IF NOT EXISTS out.",
            error_class="UNSUPPORTED_FEATURE.INSERT_PARTITION_SPEC_IF_NOT_EXISTS",
            sql_state="0A000",
        )
    named = (*insert.values, *insert.open_columns)
    strange = [name for name in named if not is_among(name, table.partition_columns, case_sensitive=case_sensitive)]
    if strange:
        raise InvalidOptionError(
            f"PARTITION: {', '.join(strange)} is no partition column of the table, which is partitioned by "
            f"({', '.join(table.partition_columns)}). Nothing was written. Name partition columns alone.",
            error_class="NON_PARTITION_COLUMN",
            sql_state="42000",
            columns=strange,
        )
    _check_listed(table, insert, case_sensitive)


def _check_listed(table: _Table, insert: ParsedInsert, case_sensitive: bool) -> None:
    """The columns that the statement lists: of the table, each once, and none that PARTITION has a value for."""
    listed = [name.lower() for name in insert.columns]
    unknown = [name for name in insert.columns if not is_among(name, table.schema.names, case_sensitive=case_sensitive)]
    twice = [name for name in insert.columns if listed.count(name.lower()) > 1]
    both = [name for name in insert.columns if name.lower() in {value.lower() for value in insert.values}]
    if unknown:
        raise SchemaMismatchError(
            f"INSERT lists {', '.join(unknown)}, and the table has {', '.join(table.schema.names)}. Nothing was written.",
            error_class="UNRESOLVED_COLUMN.WITH_SUGGESTION",
            sql_state="42703",
            columns=unknown,
        )
    if twice or both:
        raise SchemaMismatchError(
            f"INSERT gives {', '.join(dict.fromkeys(twice or both))} two values. Nothing was written. Name each column once.",
            error_class="COLUMN_ALREADY_EXISTS" if twice else "STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST",
            sql_state="42711" if twice else "42713",
            columns=twice or both,
        )


def may_evolve(spark: SparkSession, insert: ParsedInsert) -> bool:
    """Whether columns that only the query has become the table's."""
    said = next((value for name, value in insert.options.items() if name.lower() == "mergeschema"), None)
    said = said or conf(spark, "spark.databricks.delta.schema.autoMerge.enabled")
    return insert.evolves or (said is not None and said.lower() == "true")


# ---------------------------------------------------------------- which rows go


def _replacing(spark: SparkSession, table: _Table, insert: ParsedInsert, save: Save) -> Save:
    """An overwrite takes the place of the partitions that PARTITION has values for; where partitions are overwritten dynamically
    and PARTITION leaves some open, of those that the rows have; else of the whole table."""
    path = table.target.place.url
    if insert.replaces_using:
        return replace(save, mode="overwrite", matching=Matching.using([joined_name((name,)) for name in insert.replaces_using]))
    if insert.replaces_where is not None:
        where = insert.replaces_where
        check_condition_text(spark, "replaceWhere", where)
        return named_tables.overwriting_where(save, path, F.expr(where) if isinstance(where, str) else where)
    if not insert.overwrites:
        return save
    said = save.option(_PARTITION_MODE) or conf(spark, "spark.sql.sources.partitionOverwriteMode") or "static"
    if said.lower() == "dynamic" and len(insert.values) < len(table.partition_columns):
        return replace(save, mode="overwrite").with_options(partitionOverwriteMode="dynamic")
    if not insert.values:
        return replace(save, mode="overwrite").with_options(partitionOverwriteMode="static")
    return named_tables.overwriting_where(save, path, F.expr(_static_partition(table, insert)))


def _alias(spark: SparkSession, insert: ParsedInsert, target: Target, text: str) -> Alias:
    """By what the condition of REPLACE ON may call the table: its alias, or its name."""
    assert insert.replaces_on is not None
    named = ParsedTarget(insert.target.parts, insert.replaces_on.alias)
    return alias_of(spark, named, target, text)


def _replacing_on(
    spark: SparkSession,
    on: ParsedReplaceOn | WrittenReplaceOn,
    save: Save,
    columns: Sequence[tuple[str, Column]],
    alias: Alias,
) -> Save:
    """The condition speaks of the query's columns under their own names, and of values that are not cast: so they stay, and those
    of the table's columns come beside them."""
    values = {name: f"{_VALUE}{number}" for number, (name, _) in enumerate(columns)}
    made = [column.alias(values[name]) for name, column in columns]
    condition = on.condition()
    matching = Matching((), analyzer_of(spark).written_text(condition), alias, condition, values)
    return replace(save, frame=save.frame.select("*", *made), mode="overwrite", matching=matching)


def _static_partition(table: _Table, insert: ParsedInsert) -> str:
    """The condition of rows of the partitions that PARTITION has values for, as SQL: a client knows no other as text."""
    equal = []
    for name, text in insert.values.items():
        field = next(f for f in table.fields if f.name.lower() == name.lower())
        equal.append(Comparison("<=>", tree.Column((field.name,)), Cast(Literal(text, STRING), field.data_type)))
    return to_sql(And(tuple(equal)))


def _static_columns(table: _Table, insert: ParsedInsert, rule: Assigning) -> Iterator[tuple[StructField, Column]]:
    """The columns that PARTITION has values for, and these in the columns' types."""
    for name, text in insert.values.items():
        field = find_field(table.schema, name)
        assert field is not None, f"{name} is a partition column"
        yield field, rule.constant(text, field.dataType)


# ---------------------------------------------------------------- columns


def _arranged(spark: SparkSession, table: _Table, insert: ParsedInsert) -> tuple[DataFrame, list[tuple[str, Column]]]:
    """The query, and the columns of the table that it fills, with values in their types; those of PARTITION's values too."""
    wanted, query, evolves = _wanted(table, insert), insert.query, may_evolve(spark, insert)
    width = query.width()
    if width is not None and width <= len(wanted) and not insert.by_name:
        query = query.with_defaults(lambda number: _default_text(table, wanted[number]))
    frame = query.frame()
    given = frame.columns
    if not insert.by_name:
        _check_count(table, insert, wanted, given, evolves)
        if not insert.columns:
            named_tables.check_aligned(insert.replaces_using, wanted, given)
    names = given if insert.by_name else [*wanted, *given[len(wanted) :]]
    rule = Assigning.of(spark, evolves=evolves)
    if insert.replaces_on is None:  # which names columns that a query may have twice
        frame = frame.toDF(*(f"c{number}" for number in range(len(names))))
    pairs = zip(names, frame.schema.fields, strict=True)
    columns = [_assigned(rule, table, name, field, by_name=insert.by_name) for name, field in pairs]
    columns += [(field.name, value) for field, value in _static_columns(table, insert, rule)]
    filled = {name.lower() for name in (*names, *insert.values)}
    _check_filled(table, filled)
    return frame, [*columns, *_null_partitions(table, filled)]


def _check_filled(table: _Table, given: Set[str]) -> None:
    """given: names in lower case."""
    missing = [f.name for f in table.fields if not f.nullable and f.name.lower() not in given and not has_own_value(f)]
    if missing:
        raise InvariantViolationError(
            f"INSERT leaves out {', '.join(missing)}, which is NOT NULL and has no default. Nothing was written. Give it values.",
            error_class="DELTA_INSERT_COLUMN_MISMATCH",
            sql_state="42802",
            columns=missing,
        )


def _null_partitions(table: _Table, given: Set[str]) -> Iterator[tuple[str, Column]]:
    """The partition columns that the statement leaves out, and for which the table has no rule: an INSERT, other than a saved
    DataFrame, may. given: names in lower case."""
    for field in table.fields:
        if field.name in table.partition_columns and field.name.lower() not in given and not has_own_value(field):
            wanted = find_field(table.schema, field.name)
            assert wanted is not None
            yield field.name, F.lit(None).cast(wanted.dataType)


def _wanted(table: _Table, insert: ParsedInsert) -> list[str]:
    """The table's columns that the query's columns are for, by position."""
    static = {name.lower() for name in insert.values}
    return list(insert.columns) or [name for name in table.schema.names if name.lower() not in static]


def _default_text(table: _Table, name: str) -> str:
    """What DEFAULT stands for, in the column's type. Raises UnsupportedTableFeatureError for a default that Spark must not
    evaluate."""
    field = next(f for f in table.fields if f.name.lower() == name.lower())
    wanted, text = find_field(table.schema, field.name), default_text(field)
    return f"CAST({text} AS {wanted.dataType.simpleString()})" if wanted and isinstance(wanted.dataType, _WIDENED) else text


def _check_count(table: _Table, insert: ParsedInsert, wanted: Sequence[str], given: Sequence[str], evolves: bool) -> None:
    if len(given) == len(wanted) or (evolves and len(given) > len(wanted) and not insert.columns):
        return
    error_class = "DELTA_INSERT_COLUMN_ARITY_MISMATCH"
    if insert.columns:  # Spark's own parser counts there
        fault = "TOO_MANY" if len(given) > len(wanted) else "NOT_ENOUGH"
        error_class = f"INSERT_COLUMN_ARITY_MISMATCH.{fault}_DATA_COLUMNS"
    raise SchemaMismatchError(
        f"INSERT goes by position: {len(wanted)} columns are to be filled ({', '.join(wanted)}), and the query has {len(given)} "
        f"({', '.join(given)}). Nothing was written. List the columns that the query has, or INSERT ... BY NAME.",
        error_class=error_class,
        sql_state="21S01" if insert.columns else "42802",
        table=table.target.label,
    )


def _assigned(rule: Assigning, table: _Table, name: str, given: StructField, *, by_name: bool) -> tuple[str, Column]:
    """A column of the query as one of the table's; as it is where the table has none of this name."""
    field = find_field(table.schema, name)
    column = F.col(quoted(given.name))
    if field is None:
        return name, column
    found, wanted = given.dataType, field.dataType
    if not by_name:
        found = _renamed(found, wanted, evolves=rule.evolves)
        if found != given.dataType:
            column = column.cast(found)
    of_log = table.config.schema.find(name)
    if rule.evolves and of_log is not None and not keeps_type(of_log):
        wanted = _evolved(table.config, wanted, found)
    return field.name, rule.cast(Typed(column, found), wanted, field.name)


def _evolved(table: TableConfig, wanted: DataType, found: DataType) -> DataType:
    """The type that the column gets by the write: with the fields of structs that only the other has, behind its own, and
    the other's type where the table takes wider ones."""
    match wanted, found:
        case StructType(), StructType():
            given = {f.name.lower(): f for f in found.fields}
            kinds = [_evolved(table, f.dataType, given.pop(f.name.lower(), f).dataType) for f in wanted.fields]
            own = [StructField(f.name, kind, f.nullable) for f, kind in zip(wanted.fields, kinds, strict=True)]
            return StructType([*own, *given.values()])
        case ArrayType(), ArrayType():
            return ArrayType(_evolved(table, wanted.elementType, found.elementType), wanted.containsNull)
        case MapType(), MapType():
            key = _evolved(table, wanted.keyType, found.keyType)
            return MapType(key, _evolved(table, wanted.valueType, found.valueType), wanted.valueContainsNull)
    return found if _is_wider(table, wanted, found) else wanted


def _is_wider(table: TableConfig, wanted: DataType, found: DataType) -> bool:
    if not (isinstance(wanted, _WIDENED) and isinstance(found, _WIDENED)):
        return False
    old, new = (from_spark_schema(StructType([StructField("c", kind)])).fields[0].data_type for kind in (wanted, found))
    return takes_type(table, old, new)


def _renamed(found: DataType, wanted: DataType, *, evolves: bool) -> DataType:
    """The type with the names of the wanted one's fields, by position, as far as it has that many; where the table evolves, also
    where it has more."""
    match found, wanted:
        case StructType(), StructType() if len(found.fields) == len(wanted.fields) or (
            evolves and len(found.fields) > len(wanted.fields)
        ):
            pairs = zip(found.fields, wanted.fields, strict=False)
            renamed = [StructField(w.name, _renamed(f.dataType, w.dataType, evolves=evolves), f.nullable) for f, w in pairs]
            return StructType([*renamed, *found.fields[len(wanted.fields) :]])
        case ArrayType(), ArrayType():
            return ArrayType(_renamed(found.elementType, wanted.elementType, evolves=evolves), found.containsNull)
        case MapType(), MapType():
            key = _renamed(found.keyType, wanted.keyType, evolves=evolves)
            value = _renamed(found.valueType, wanted.valueType, evolves=evolves)
            return MapType(key, value, found.valueContainsNull)
    return found
