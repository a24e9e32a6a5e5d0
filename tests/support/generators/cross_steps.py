"""Random tables and steps for test_crosses.py, from a seed: SQL text and writes of rows, without a session.

The next step depends on the seed and on the current table (State), never on who does it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from delta_py import DeltaTable

KEY = "k"
"""The column that tells rows apart: there for good, never null, once each but after an append of what is there."""


@dataclass(frozen=True)
class Sql:
    """{t} is the table. keeps_rows: every later row with a key from before is the same row, with its row id."""

    text: str
    keeps_rows: bool = True

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Write:
    """A DataFrame's write of what `rows` selects. plain: our write is without Spark."""

    rows: str
    mode: str = "append"
    options: Mapping[str, str] = field(default_factory=dict)
    plain: bool = False
    keeps_rows: bool = False

    def __str__(self) -> str:
        how = " by write_delta" if self.plain else ""
        return f"write{how}, mode {self.mode}, options {dict(self.options)}: {self.rows}"


@dataclass(frozen=True)
class Checkpoint:
    keeps_rows: bool = True

    def __str__(self) -> str:
        return "checkpoint"


Step: TypeAlias = Sql | Write | Checkpoint


@dataclass(frozen=True)
class State:
    """The table before a step."""

    version: int
    schema: StructType
    partition_by: tuple[str, ...]
    configuration: Mapping[str, str]
    features: frozenset[str]
    keys: tuple[int, ...]

    @classmethod
    def of(cls, path: str) -> State:
        table = DeltaTable(path)
        metadata, protocol = table.metadata, table.protocol
        return cls(
            table.version,
            StructType.fromJson(json.loads(metadata.schema_string)),
            metadata.partition_columns,
            metadata.configuration,
            (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset()),
            tuple(table.to_arrow(columns=[KEY])[KEY].to_pylist()),
        )

    @property
    def mapped(self) -> bool:
        return self.configuration.get("delta.columnMapping.mode", "none") != "none"

    def is_on(self, name: str) -> bool:
        return self.configuration.get(f"delta.{name}", "false") == "true"

    @property
    def generated(self) -> list[str]:
        return [one.name for one in self.schema if "delta.generationExpression" in one.metadata]

    @property
    def identity(self) -> list[str]:
        return [one.name for one in self.schema if "delta.identity.step" in one.metadata]

    @property
    def plain_fields(self) -> list[StructField]:
        """The columns for which every writer may set values."""
        return [one for one in self.schema if one.name not in {*self.generated, *self.identity}]


# ---------------------------------------------------------------- tables


@dataclass(frozen=True)
class Definition:
    columns: tuple[str, ...]
    layout: str
    properties: Mapping[str, str]

    def sql(self, source: str) -> str:
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in self.properties.items())
        return (
            f"CREATE TABLE {{t}} ({', '.join(self.columns)}) USING {source} {self.layout}"
            f"{f' TBLPROPERTIES ({properties})' if properties else ''}"
        )


MORE_COLUMNS = (
    "l ARRAY<STRUCT<x: INT, y: STRING>>",
    "mp MAP<STRING, INT>",
    "d DATE",
    "at TIMESTAMP",
    "f FLOAT",
    "yes BOOLEAN",
    "bytes BINARY",
    "nt TIMESTAMP_NTZ",
    "vc VARCHAR(8)",
    "ch CHAR(5)",
)


def draw_definition(rng: random.Random) -> Definition:
    def some(chance: float) -> bool:
        return rng.random() < chance

    columns = [f"k BIGINT{' NOT NULL' if some(0.3) else ''}", "v STRING", f"w {rng.choice(['TINYINT', 'SMALLINT', 'INT'])}"]
    columns += ["m DECIMAL(5, 2)", "s STRUCT<a: INT, b: STRING>"]
    columns += rng.sample(MORE_COLUMNS, rng.randint(0, 3))
    properties: dict[str, str] = {}
    partitions: list[str] = []
    if some(0.4):
        columns.append("p " + rng.choice(["INT", "STRING", "DATE", "SMALLINT", "DECIMAL(4, 1)", "TIMESTAMP", "BOOLEAN"]))
        partitions.append("p")
    if some(0.25):
        columns.append("g BIGINT GENERATED ALWAYS AS (k * 2)")
    if some(0.2) and "at TIMESTAMP" in columns:
        columns.append("day DATE GENERATED ALWAYS AS (CAST(at AS DATE))")
        if some(0.6):
            partitions.append("day")
    if some(0.25):
        kind = rng.choice(["ALWAYS", "BY DEFAULT"])
        numbers = f"START WITH {rng.choice([1, -5, 100])} INCREMENT BY {rng.choice([1, 3, -2])}"
        columns.append(f"i BIGINT GENERATED {kind} AS IDENTITY ({numbers})")
    if some(0.3):
        columns += ["e INT DEFAULT 7", "ds STRING DEFAULT concat('a', 'b')"]
        properties["delta.feature.allowColumnDefaults"] = "supported"
    layout = ""
    if partitions:
        layout = f"PARTITIONED BY ({', '.join(partitions)})"
    elif some(0.4):
        layout = f"CLUSTER BY ({', '.join(rng.sample(['k', 'v', 's.a', 'm'], rng.randint(1, 2)))})"
    chances = {
        "delta.enableDeletionVectors": 0.5,
        "delta.enableChangeDataFeed": 0.5,
        "delta.enableRowTracking": 0.4,
        "delta.enableInCommitTimestamps": 0.3,
        "delta.enableTypeWidening": 0.5,
    }
    properties.update({name: "true" for name, chance in chances.items() if some(chance)})
    mode = rng.choice(["", "name", "id"])
    if mode:
        properties["delta.columnMapping.mode"] = mode
    if some(0.4):
        properties["delta.checkpointPolicy"] = "v2"
    properties["delta.checkpointInterval"] = str(rng.choice([2, 3, 5, 10]))
    if some(0.2):
        properties["delta.checkpoint.writeStatsAsJson"] = "false"
    if some(0.2):
        properties["delta.checkpoint.writeStatsAsStruct"] = "false"
    if some(0.15):
        properties["delta.dataSkippingNumIndexedCols"] = rng.choice(["0", "2"])
    return Definition(tuple(columns), layout, properties)


# ---------------------------------------------------------------- values

TEXTS = ("", "a", "b c", "näme", "u/=%", "x'y", "~", "\u00e9\U0001f600")


def literal(rng: random.Random, kind: DataType, nullable: bool = True) -> str:
    """SQL text of a value of the type."""
    if nullable and rng.random() < 0.15:
        return f"CAST(NULL AS {sql_type(kind)})"
    return f"CAST({_value(rng, kind)} AS {sql_type(kind)})"


def _value(rng: random.Random, kind: DataType) -> str:
    match kind:
        case ByteType():
            return str(rng.choice([-128, 0, 1, 2, 127]))
        case ShortType():
            return str(rng.choice([-32768, 0, 1, 2, 300, 32767]))
        case IntegerType():
            return str(rng.choice([-(2**31), 0, 1, 2, 3, 70_000, 2**31 - 1]))
        case LongType():
            return f"{rng.choice([0, 1, 2, 3, 2**40, -(2**40)])}L"
        case DecimalType():
            whole_digits = min(kind.precision - kind.scale, 4)
            return f"'{rng.choice([0, 1, 2, 10**whole_digits - 1])}.{'25'[: min(kind.scale, 2)]}'"
        case FloatType() | DoubleType():
            return rng.choice(["0.5", "-0.0D", "'NaN'", "'Infinity'", "1.0E-20D"])
        case BooleanType():
            return rng.choice(["true", "false"])
        case BinaryType():
            return rng.choice(["X'00FF'", "X''", "X'7837'"])
        case DateType():
            return f"DATE'{rng.choice(['2024-01-01', '2024-02-29', '1969-12-31', '0001-01-01', '9999-12-31'])}'"
        case TimestampType():
            return f"TIMESTAMP'{rng.choice(TIMES)}'"
        case TimestampNTZType():
            return f"TIMESTAMP_NTZ'{rng.choice(TIMES)}'"
        case StructType():
            return f"named_struct({', '.join(f'{quoted_text(one.name)}, {literal(rng, one.dataType)}' for one in kind)})"
        case ArrayType():
            return f"array({', '.join(literal(rng, kind.elementType) for _ in range(rng.randint(0, 2)))})"
        case MapType():
            return f"map({literal(rng, kind.keyType, False)}, {literal(rng, kind.valueType)})"
        case _:  # texts; VARCHAR and CHAR have room for each
            return quoted_text(rng.choice(TEXTS))


TIMES = ("2024-01-01 12:30:00.123456", "2024-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2024-02-29 01:00:00")


def quoted_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def sql_type(kind: DataType) -> str:
    match kind:
        case StructType():
            return f"STRUCT<{', '.join(f'{quoted(one.name)}: {sql_type(one.dataType)}' for one in kind)}>"
        case ArrayType():
            return f"ARRAY<{sql_type(kind.elementType)}>"
        case MapType():
            return f"MAP<{sql_type(kind.keyType)}, {sql_type(kind.valueType)}>"
        case StringType():
            return "STRING"
        case _:
            return kind.simpleString().upper()


def selected(rng: random.Random, fields: Sequence[StructField], keys: Iterable[int]) -> str:
    """A query with a row for each key."""
    rows = (
        [f"CAST({key} AS BIGINT)" if one.name == KEY else literal(rng, one.dataType, one.nullable) for one in fields]
        for key in keys
    )
    tuples = [f"({', '.join(row)})" for row in rows]
    return f"SELECT * FROM VALUES {', '.join(tuples)} AS s({', '.join(quoted(one.name) for one in fields)})"


# ---------------------------------------------------------------- steps


def new_keys(rng: random.Random, state: State, most: int = 6) -> list[int]:
    """Keys that the table has not used so far, judged by its newest version."""
    first = max([0, *state.keys]) + 1
    return list(range(first, first + rng.randint(1, most)))


def written_fields(rng: random.Random, state: State) -> list[StructField]:
    """The columns of a write: mostly all that a writer may set; some are left out, or generated ones set."""
    fields = list(state.plain_fields)
    if rng.random() < 0.3:
        fields = [one for one in fields if one.name == KEY or not one.nullable or rng.random() < 0.7]
    return fields


def append(rng: random.Random, state: State) -> Step:
    rows = selected(rng, written_fields(rng, state), new_keys(rng, state))
    if rng.random() < 0.3:
        names = ", ".join(quoted(name) for name in re.findall(r"`((?:[^`]|``)+)`(?=[,)])", rows[rows.rindex(" AS s(") :]))
        return Sql(f"INSERT INTO {{t}} ({names}) {rows}")
    once = {"txnAppId": "app", "txnVersion": str(rng.randint(1, 4))} if rng.random() < 0.15 else {}
    return Write(rows, options=once, plain=rng.random() < 0.4)


def overwrite(rng: random.Random, state: State) -> Step:
    options = {"overwriteSchema": "true"} if rng.random() < 0.1 else {}
    fields = state.plain_fields if options else written_fields(rng, state)
    return Write(selected(rng, fields, new_keys(rng, state, 10)), "overwrite", options, rng.random() < 0.4)


COMPARED = (ByteType, ShortType, IntegerType, LongType, DecimalType, DateType, BooleanType, StringType, TimestampType)


def predicate(rng: random.Random, state: State, prefix: str = "") -> str:
    names = {one.name: one for one in state.schema}
    conditions = [
        f"{prefix}k % {rng.choice([2, 3, 5])} = {rng.choice([0, 1])}",
        f"{prefix}k > {rng.choice([*state.keys, 3])}",
        f"{prefix}k IN ({', '.join(str(rng.choice([*state.keys, 3])) for _ in range(3))})",
        f"{prefix}k = {rng.choice([*state.keys, 3])}",
    ]
    if "v" in names:
        conditions += [f"{prefix}v IS NULL", f"{prefix}v LIKE 'n%' OR {prefix}k < 3"]
    if "s" in names and "a" in names["s"].dataType.names:
        conditions.append(f"{prefix}s.a > 1")
    for one in state.schema:
        if isinstance(one.dataType, COMPARED):
            conditions.append(f"{prefix}{quoted(one.name)} = {literal(rng, one.dataType, False)}")
    return rng.choice(conditions)


def partition_predicate(rng: random.Random, state: State) -> str | None:
    if not state.partition_by:
        return None
    one = state.schema[rng.choice(state.partition_by)]
    if rng.random() < 0.2:
        return f"{quoted(one.name)} IS NULL"
    return f"{quoted(one.name)} {rng.choice(['=', '=', '<>'])} {literal(rng, one.dataType, False)}"


def replace_where(rng: random.Random, state: State) -> Step:
    """Rows that mostly match the predicate."""
    by_partition = partition_predicate(rng, state) if rng.random() < 0.5 else None
    fields = state.plain_fields
    if by_partition is not None:
        rows = f"SELECT * FROM ({selected(rng, fields, new_keys(rng, state))}) WHERE {by_partition}"
        if set(re.findall("`(.+?)`", by_partition)) & set(state.generated):
            rows = selected(rng, fields, new_keys(rng, state))
        return Write(rows, "overwrite", {"replaceWhere": by_partition}, rng.random() < 0.4)
    keys = new_keys(rng, state)
    condition = f"k >= {keys[0] - rng.randint(0, 3)}" + (f" AND k < {keys[-1]}" if rng.random() < 0.15 else "")
    return Write(selected(rng, fields, keys), "overwrite", {"replaceWhere": condition}, rng.random() < 0.4)


def dynamic_overwrite(rng: random.Random, state: State) -> Step:
    rows = selected(rng, state.plain_fields, new_keys(rng, state))
    return Write(rows, "overwrite", {"partitionOverwriteMode": "dynamic"}, rng.random() < 0.4)


def delete(rng: random.Random, state: State) -> Step:
    condition = partition_predicate(rng, state) if rng.random() < 0.3 else None
    return Sql(f"DELETE FROM {{t}} WHERE {condition or predicate(rng, state)}")


def update(rng: random.Random, state: State) -> Step:
    fields = [one for one in state.plain_fields if one.name != KEY]
    if rng.random() < 0.05:
        fields = [one for one in state.schema if one.name != KEY]  # those that a writer may not set
    if not fields:
        return delete(rng, state)
    sets = []
    for one in rng.sample(fields, min(len(fields), rng.randint(1, 2))):
        if isinstance(one.dataType, StructType) and rng.random() < 0.5:
            leaf = rng.choice(list(one.dataType))
            sets.append(f"{quoted(one.name)}.{quoted(leaf.name)} = {literal(rng, leaf.dataType)}")
        else:
            sets.append(f"{quoted(one.name)} = {literal(rng, one.dataType, one.nullable)}")
    where = f" WHERE {predicate(rng, state)}" if rng.random() < 0.9 else ""
    return Sql(f"UPDATE {{t}} SET {', '.join(sets)}{where}")


def merge(rng: random.Random, state: State) -> Step:
    present = sorted(set(state.keys))
    keys = rng.sample(present, min(len(present), rng.randint(0, 4))) + new_keys(rng, state, 3)
    fields = list(state.plain_fields)
    evolving = rng.random() < 0.4
    if evolving:
        fields = evolved(rng, state, fields)
    elif rng.random() < 0.2:
        fields = [one for one in fields if one.name == KEY or rng.random() < 0.6]  # * is refused, or takes the columns of both
    source = selected(rng, fields, keys)
    sets = [one.name for one in fields if one.name != KEY and one.name in state.schema.names]
    clauses = []
    for _ in range(rng.randint(1, 2)):
        when = f" AND {predicate(rng, state, rng.choice(['t.']))}" if rng.random() < 0.4 else ""
        act = rng.choice(["UPDATE SET *", "UPDATE SET *", "DELETE", "UPDATE SET one"])
        if act == "UPDATE SET one":
            name = rng.choice(sets) if sets else None
            act = "DELETE" if name is None else f"UPDATE SET {quoted(name)} = s.{quoted(name)}"
        clauses.append(f"WHEN MATCHED{when} THEN {act}")
        if not when:
            break
    if rng.random() < 0.8:
        clauses.append("WHEN NOT MATCHED THEN INSERT *")
    if rng.random() < 0.3:
        act = "DELETE" if rng.random() < 0.5 or "v" not in state.schema.names else "UPDATE SET v = 'left'"
        if "v" in state.partition_by or state.schema["k"].name != "k":
            act = "DELETE"
        clauses.append(f"WHEN NOT MATCHED BY SOURCE AND t.k % 4 = 1 THEN {act}")
    more = f" AND t.{quoted(state.partition_by[0])} <=> s.{quoted(state.partition_by[0])}" if _joined(rng, state, fields) else ""
    head = "MERGE WITH SCHEMA EVOLUTION INTO" if evolving else "MERGE INTO"
    # With `more` a row may be deleted and another one inserted with its key.
    return Sql(f"{head} {{t}} t USING ({source}) s ON t.k = s.k{more} {' '.join(clauses)}", keeps_rows=not more)


def _joined(rng: random.Random, state: State, fields: Sequence[StructField]) -> bool:
    """Whether the condition of a MERGE also uses a partition column."""
    names = [one.name for one in fields]
    return bool(state.partition_by) and state.partition_by[0] in names and rng.random() < 0.3


NEW_TYPES = (
    "INT", "SMALLINT", "STRING", "DECIMAL(6, 2)", "FLOAT", "DATE", "TIMESTAMP", "BOOLEAN", "BINARY", "DOUBLE",
    "STRUCT<a: INT, b: STRING>", "ARRAY<INT>", "MAP<STRING, INT>", "ARRAY<STRUCT<x: SMALLINT>>",
)  # fmt: skip
WIDER: Mapping[type[DataType], Sequence[DataType]] = {
    ByteType: (ShortType(), IntegerType(), LongType(), DecimalType(10, 0), DoubleType()),
    ShortType: (IntegerType(), LongType(), DecimalType(10, 0), DoubleType()),
    IntegerType: (LongType(), DecimalType(10, 0), DoubleType()),
    LongType: (DecimalType(20, 0), IntegerType()),
    FloatType: (DoubleType(),),
    DateType: (TimestampNTZType(),),
}


def wider(rng: random.Random, kind: DataType) -> DataType | None:
    if isinstance(kind, DecimalType):
        return rng.choice([DecimalType(kind.precision + 2, kind.scale), DecimalType(kind.precision + 2, kind.scale + 1)])
    choices = WIDER.get(type(kind))
    return rng.choice(choices) if choices else None


def new_name(rng: random.Random, state: State) -> str:
    used_names = {name.lower() for name in state.schema.names}
    numbers = (
        n for n in range(1, 100) if f"c{n}" not in used_names and f"c {n}" not in used_names and f"c.{n}" not in used_names
    )
    number = next(numbers)
    return rng.choice([f"c{number}", f"c{number}", f"c {number}", f"c.{number}"]) if state.mapped else f"c{number}"


def spark_type(text: str) -> DataType:
    simple: Mapping[str, DataType] = {
        "INT": IntegerType(), "SMALLINT": ShortType(), "STRING": StringType(), "DECIMAL(6, 2)": DecimalType(6, 2),
        "FLOAT": FloatType(), "DATE": DateType(), "TIMESTAMP": TimestampType(), "BOOLEAN": BooleanType(), "BINARY": BinaryType(),
        "DOUBLE": DoubleType(), "STRUCT<a: INT, b: STRING>": StructType().add("a", IntegerType()).add("b", StringType()),
        "ARRAY<INT>": ArrayType(IntegerType()), "MAP<STRING, INT>": MapType(StringType(), IntegerType()),
        "ARRAY<STRUCT<x: SMALLINT>>": ArrayType(StructType().add("x", ShortType())),
    }  # fmt: skip
    return simple[text]


def evolved(rng: random.Random, state: State, fields: Sequence[StructField]) -> list[StructField]:
    """The fields of a source that has more: another column, another field, a wider type."""
    new_fields = list(fields)
    kind = rng.choice(["column", "column", "field", "type"])
    if kind == "column":
        new_fields.insert(rng.randint(1, len(new_fields)), StructField(new_name(rng, state), spark_type(rng.choice(NEW_TYPES))))
        return new_fields
    structs = [n for n, one in enumerate(new_fields) if isinstance(one.dataType, StructType)]
    if kind == "field" and structs:
        at = rng.choice(structs)
        inner = new_fields[at].dataType
        assert isinstance(inner, StructType)
        more = StructType([*inner.fields, StructField(f"z{len(inner.fields)}", rng.choice([IntegerType(), StringType()]))])
        new_fields[at] = StructField(new_fields[at].name, more, new_fields[at].nullable)
        return new_fields
    at = rng.randrange(len(new_fields))
    other = None if new_fields[at].name == KEY else wider(rng, new_fields[at].dataType)
    if other is not None:
        new_fields[at] = StructField(new_fields[at].name, other, new_fields[at].nullable)
    return new_fields


def merge_schema(rng: random.Random, state: State) -> Step:
    rows = selected(rng, evolved(rng, state, state.plain_fields), new_keys(rng, state))
    if rng.random() < 0.15:
        return Write(rows, "overwrite", {"mergeSchema": "true"}, rng.random() < 0.4)
    return Write(rows, "append", {"mergeSchema": "true"}, rng.random() < 0.4)


def alter(rng: random.Random, state: State) -> Step:
    return rng.choice(ALTERS)(rng, state)


def _altered(text: str) -> Step:
    return Sql(f"ALTER TABLE {{t}} {text}")


def some_column(rng: random.Random, state: State) -> StructField:
    """Any column except the key; one time in ten a partition column, a generated one or similar."""
    special = {KEY, *state.partition_by, *state.generated, *state.identity}
    usual = [one for one in state.schema if one.name not in special]
    special_fields = [one for one in state.schema if one.name in special and one.name != KEY]
    return rng.choice(special_fields if special_fields and (not usual or rng.random() < 0.15) else usual or list(state.schema))


def add_column(rng: random.Random, state: State) -> Step:
    text = f"{quoted(new_name(rng, state))} {rng.choice(NEW_TYPES)}"
    if rng.random() < 0.3:
        text += rng.choice([" FIRST", f" AFTER {quoted(some_column(rng, state).name)}", " COMMENT 'it''s new'"])
    structs = [one for one in state.schema if isinstance(one.dataType, StructType)]
    if structs and rng.random() < 0.3:
        one = rng.choice(structs)
        text = f"{quoted(one.name)}.z{len(one.dataType.names)} {rng.choice(['INT', 'STRING'])}"
    return _altered(f"ADD COLUMNS ({text})")


def rename(rng: random.Random, state: State) -> Step:
    one = some_column(rng, state)
    if isinstance(one.dataType, StructType) and rng.random() < 0.4:
        leaf = rng.choice(one.dataType.names)
        return _altered(f"RENAME COLUMN {quoted(one.name)}.{quoted(leaf)} TO {quoted('r' + leaf[:3])}")
    return _altered(f"RENAME COLUMN {quoted(one.name)} TO {quoted(new_name(rng, state))}")


def drop(rng: random.Random, state: State) -> Step:
    one = some_column(rng, state)
    if isinstance(one.dataType, StructType) and rng.random() < 0.4:
        return _altered(f"DROP COLUMN {quoted(one.name)}.{quoted(rng.choice(one.dataType.names))}")
    return _altered(f"DROP COLUMN {quoted(one.name)}")


def widen(rng: random.Random, state: State) -> Step:
    for _ in range(8):
        one = some_column(rng, state)
        kind = wider(rng, one.dataType)
        if kind is not None:
            return _altered(f"ALTER COLUMN {quoted(one.name)} TYPE {sql_type(kind)}")
    return add_column(rng, state)


MODE = "delta.columnMapping.mode"
PROPERTIES = (
    ("delta.enableChangeDataFeed", ("true", "false")),
    ("delta.enableDeletionVectors", ("true", "false")),
    ("delta.enableTypeWidening", ("true", "false")),
    ("delta.enableInCommitTimestamps", ("true", "false")),
    ("delta.enableRowTracking", ("true", "false")),
    (MODE, ("name", "id", "none")),
    ("delta.checkpointInterval", ("2", "4")),
    ("delta.checkpointPolicy", ("v2", "classic")),
    ("delta.checkpoint.writeStatsAsStruct", ("true", "false")),
    ("delta.appendOnly", ("false",)),
    ("delta.dataSkippingStatsColumns", ("k", "k,nowhere")),
    ("delta.feature.allowColumnDefaults", ("supported",)),
    ("own.property", ("1", "two")),
    *[(MODE, ("none",))] * 3,
)


def set_property(rng: random.Random, state: State) -> Step:
    if rng.random() < 0.15:
        name = rng.choice([*(name for name in state.configuration if not name.startswith("delta.constraints")), "own.property"])
        name = "own.property" if name == MODE and not _may_end_mapping(state) else name
        return _altered(f"UNSET TBLPROPERTIES {rng.choice(['', 'IF EXISTS '])}('{name}')")
    name, values = rng.choice(PROPERTIES)
    value = rng.choice(values)
    if (name, value) == (MODE, "none") and not _may_end_mapping(state):
        value = "name"
    return _altered(f"SET TBLPROPERTIES ('{name}' = '{value}')")


def _may_end_mapping(state: State) -> bool:
    """Not if there is no mapping: then delta-spark rewrites the files for nothing. Nor for a clustered table: delta-spark leaves
    its clustering columns under names that it no longer finds."""
    return state.mapped and "clustering" not in state.features


def constraint(rng: random.Random, state: State) -> Step:
    there = [name.removeprefix("delta.constraints.") for name in state.configuration if name.startswith("delta.constraints.")]
    if there and rng.random() < 0.5:
        return _altered(f"DROP CONSTRAINT {rng.choice(there)}")
    texts = ["k >= 0", f"k < {max([0, *state.keys]) + 8}", "k % 7 <> 6 OR k > 0"]
    if "w" in state.schema.names:
        texts.append("w IS NULL OR w < 70000")
    if "s" in state.schema.names and "a" in state.schema["s"].dataType.names:
        texts.append("s.a IS NULL OR s.a > -3")
    return _altered(f"ADD CONSTRAINT c{rng.randint(1, 3)} CHECK ({rng.choice(texts)})")


def default(rng: random.Random, state: State) -> Step:
    one = some_column(rng, state)
    if rng.random() < 0.3:
        return _altered(f"ALTER COLUMN {quoted(one.name)} DROP DEFAULT")
    return _altered(f"ALTER COLUMN {quoted(one.name)} SET DEFAULT {literal(rng, one.dataType)}")


def not_null(rng: random.Random, state: State) -> Step:
    name = rng.choice([KEY, some_column(rng, state).name])
    return _altered(f"ALTER COLUMN {quoted(name)} {rng.choice(['DROP', 'DROP', 'SET'])} NOT NULL")


def cluster_by(rng: random.Random, state: State) -> Step:
    if rng.random() < 0.3:
        return _altered("CLUSTER BY NONE")
    return _altered(f"CLUSTER BY ({', '.join({KEY, quoted(some_column(rng, state).name)})})")


ALTERS: tuple[Callable[[random.Random, State], Step], ...] = (
    add_column, add_column, rename, rename, drop, drop, widen, widen, widen, set_property, set_property, set_property,
    constraint, constraint, default, not_null, cluster_by,
)  # fmt: skip


def optimize(rng: random.Random, state: State) -> Step:
    where = partition_predicate(rng, state) if rng.random() < 0.4 else None
    text = "OPTIMIZE {t}" + (f" WHERE {where}" if where else "")
    clustered = "clustering" in state.features
    if not clustered and rng.random() < 0.3:
        text += " ZORDER BY (k)"
    if rng.random() < 0.2:
        text = f"REORG TABLE {{t}}{f' WHERE {where}' if where else ''} APPLY (PURGE)"
    return Sql(text)


def restore(rng: random.Random, state: State) -> Step:
    version = max(0, state.version - rng.randint(0 if rng.random() < 0.1 else 1, 6))
    return Sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {version}", keeps_rows=False)


def checkpoint(rng: random.Random, state: State) -> Step:
    return Checkpoint()


STEPS: Sequence[tuple[int, Callable[[random.Random, State], Step]]] = (
    (4, append),
    (1, overwrite),
    (2, replace_where),
    (1, dynamic_overwrite),
    (3, delete),
    (4, update),
    (5, merge),
    (3, merge_schema),
    (8, alter),
    (3, optimize),
    (2, restore),
    (1, checkpoint),
)
LARGEST = 40


def draw_step(rng: random.Random, state: State) -> Step:
    if not state.keys:
        return append(rng, state)
    if len(state.keys) > LARGEST:
        return Sql(f"DELETE FROM {{t}} WHERE k % 3 <> {rng.randint(0, 2)}")
    weights, makers = zip(*STEPS, strict=True)
    make: Callable[[random.Random, State], Step] = rng.choices(makers, weights)[0]
    return make(rng, state)


def described(definition: Definition, steps: Sequence[tuple[str, Step]]) -> str:
    """All that is needed to repeat it by hand."""
    return "\n".join([definition.sql("..."), *(f"{n:3} {who}: {step}" for n, (who, step) in enumerate(steps, 1))])
