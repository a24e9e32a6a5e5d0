"""The same ALTER TABLE by delta-spark and by pydelta, on copies of one table: both make the same commit, or refuse with the same
condition. Afterwards delta-spark reads and writes our table.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_py import DeltaTable as PlainTable
from delta_py.alter.alter_columns import add_columns, change_columns, drop_columns, rename_column, replace_columns
from delta_py.alter.column_changes import ColumnChange, NewColumn
from delta_py.alter.drop_feature import drop_feature
from delta_py.alter.table_constraints import add_constraint, drop_constraint
from delta_py.errors import DeltaError
from delta_py.storage.local import LocalStore
from delta_py.types.schema import (
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP_NTZ,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)
from tests.support.oracles.rows import difference

COLUMNS = (
    "id INT, name STRING COMMENT 'n', s STRUCT<a: INT, b: STRUCT<c: SHORT>>, l ARRAY<STRUCT<x: INT>>, m MAP<INT, FLOAT>, "
    "nn INT NOT NULL, d DATE, v VARCHAR(5), n DECIMAL(5,2), p INT"
)
ROW = "1, 'a', named_struct('a', 1, 'b', named_struct('c', 2S)), array(named_struct('x', 3)), map(4, 5.5F), 6, DATE'2024-01-02', "
ROW += "'v', 7.25, 8"
NAME = {"delta.columnMapping.mode": "name"}
WIDE = {"delta.enableTypeWidening": "true"}
DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}


@dataclass(frozen=True)
class Case:
    """theirs: SQL after ALTER TABLE t. ours: takes a store. properties: of the table. before: SQL for both, after ALTER TABLE t.
    cluster: whether the table is clustered by id, and not partitioned by p. refused: the condition of an error, or that of
    delta-spark and ours if Spark's analyzer refuses first."""

    theirs: str
    ours: Callable[[Any], Any]
    properties: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    cluster: bool = False
    refused: str | tuple[str, str] | None = None


def add(*columns: NewColumn) -> Callable[[Any], Any]:
    return lambda store: add_columns(store, columns)


def change(*changes: ColumnChange) -> Callable[[Any], Any]:
    return lambda store: change_columns(store, changes)


def rename(old: str, new: str) -> Callable[[Any], Any]:
    return lambda store: rename_column(store, old, new)


def drop(*names: str, **options: Any) -> Callable[[Any], Any]:
    return lambda store: drop_columns(store, names, **options)


CASES = {
    "add": Case("ADD COLUMNS (x LONG COMMENT 'c', y STRING)", add(NewColumn("x", LONG, comment="c"), NewColumn("y", STRING))),
    "add mapped": Case("ADD COLUMN x LONG", add(NewColumn("x", LONG)), NAME),
    "add first and after": Case(
        "ADD COLUMNS (x INT FIRST, y INT AFTER name)",
        add(NewColumn("x", INTEGER, first=True), NewColumn("y", INTEGER, after="name")),
    ),
    "add nested": Case(
        "ADD COLUMNS (s.x INT, s.b.y INT FIRST, l.element.z INT AFTER x)",
        add(NewColumn("s.x", INTEGER), NewColumn("s.b.y", INTEGER, first=True), NewColumn("l.element.z", INTEGER, after="x")),
        NAME,
    ),
    "add varchar": Case("ADD COLUMN x VARCHAR(3)", add(NewColumn("x", PrimitiveType("varchar(3)")))),
    "add struct": Case(
        "ADD COLUMN x STRUCT<a: INT, b: DECIMAL(4,1)>",
        add(NewColumn("x", StructType((StructField("a", INTEGER), StructField("b", DecimalType(4, 1)))))),
        NAME,
    ),
    "add not null": Case(
        "ADD COLUMN x INT NOT NULL", add(NewColumn("x", INTEGER, nullable=False)), refused="DELTA_OPERATION_NOT_ALLOWED"
    ),
    "add with default": Case(
        "ADD COLUMN x INT DEFAULT 3",
        add(NewColumn("x", INTEGER, default="3")),
        DEFAULTS,
        refused="WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
    ),
    "add what is there": Case(
        "ADD COLUMN ID INT", add(NewColumn("ID", INTEGER)), refused=("FIELD_ALREADY_EXISTS", "DELTA_DUPLICATE_COLUMNS_FOUND")
    ),
    "add timestamp_ntz": Case(
        "ADD COLUMN x TIMESTAMP_NTZ", add(NewColumn("x", TIMESTAMP_NTZ)), refused="DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"
    ),
    "add below no struct": Case(
        "ADD COLUMN m.x INT", add(NewColumn("m.x", INTEGER)), refused=("INVALID_FIELD_NAME", "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT")
    ),
    "add a bad name": Case(
        "ADD COLUMN `a b` INT", add(NewColumn("a b", INTEGER)), refused="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    ),
    "rename": Case("RENAME COLUMN id TO key", rename("id", "key"), NAME),
    "rename nested": Case("RENAME COLUMN s.b.c TO `c.d`", rename("s.b.c", "c.d"), NAME),
    "rename in array": Case("RENAME COLUMN l.element.x TO y", rename("l.element.x", "y"), NAME),
    "rename partition column": Case("RENAME COLUMN p TO q", rename("p", "q"), NAME),
    "rename clustering column": Case("RENAME COLUMN id TO key", rename("id", "key"), NAME, cluster=True),
    "rename stats column": Case(
        "RENAME COLUMN s TO t", rename("s", "t"), {**NAME, "delta.dataSkippingStatsColumns": "id,s.a,s.b.c,name"}
    ),
    "rename unmapped": Case("RENAME COLUMN id TO key", rename("id", "key"), refused="DELTA_UNSUPPORTED_RENAME_COLUMN"),
    "rename checked": Case(
        "RENAME COLUMN s TO t",
        rename("s", "t"),
        NAME,
        ("ADD CONSTRAINT c CHECK (s.a > 0)",),
        refused="DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
    ),
    "rename beside what is checked": Case(
        "RENAME COLUMN s.b TO t", rename("s.b", "t"), NAME, ("ADD CONSTRAINT c CHECK (s.a > 0)",)
    ),
    "drop": Case("DROP COLUMN name", drop("name"), NAME),
    "drop several": Case("DROP COLUMNS (name, s.a)", drop("name", "s.a"), NAME),
    "drop if exists": Case("DROP COLUMNS IF EXISTS (name, nowhere)", drop("name", "nowhere", if_exists=True), NAME),
    "drop the last field": Case("DROP COLUMN s.b.c", drop("s.b.c"), NAME, refused="DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"),
    "drop unmapped": Case("DROP COLUMN name", drop("name"), refused="DELTA_UNSUPPORTED_DROP_COLUMN"),
    "drop partition column": Case("DROP COLUMN p", drop("p"), NAME, refused="DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"),
    "drop clustering column": Case(
        "DROP COLUMN id", drop("id"), NAME, cluster=True, refused="DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"
    ),
    "drop checked": Case(
        "DROP COLUMN id",
        drop("id"),
        NAME,
        ("ADD CONSTRAINT c CHECK (id > 0)",),
        refused="DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
    ),
    "drop stats column": Case("DROP COLUMN s.a", drop("s.a"), {**NAME, "delta.dataSkippingStatsColumns": "id,s.a,s.b.c"}),
    "widen": Case("ALTER COLUMN id TYPE LONG", change(ColumnChange("id", LONG)), WIDE),
    "widen to decimal": Case("ALTER COLUMN id TYPE DECIMAL(12,2)", change(ColumnChange("id", DecimalType(12, 2))), WIDE),
    "widen to a narrow decimal": Case(
        "ALTER COLUMN id TYPE DECIMAL(10,2)",
        change(ColumnChange("id", DecimalType(10, 2))),
        WIDE,
        refused=("NOT_SUPPORTED_CHANGE_COLUMN", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
    ),
    "widen decimal": Case("ALTER COLUMN n TYPE DECIMAL(8,3)", change(ColumnChange("n", DecimalType(8, 3))), WIDE),
    "widen to double": Case("ALTER COLUMN id TYPE DOUBLE", change(ColumnChange("id", DOUBLE)), WIDE),
    "widen nested": Case("ALTER COLUMN s.b.c TYPE INT", change(ColumnChange("s.b.c", INTEGER)), WIDE),
    "widen key": Case("ALTER COLUMN m.key TYPE LONG", change(ColumnChange("m.key", LONG)), {**WIDE, **NAME}),
    "widen value": Case("ALTER COLUMN m.value TYPE DOUBLE", change(ColumnChange("m.value", DOUBLE)), WIDE),
    "widen in array": Case("ALTER COLUMN l.element.x TYPE LONG", change(ColumnChange("l.element.x", LONG)), WIDE),
    "widen partition column": Case("ALTER COLUMN p TYPE LONG", change(ColumnChange("p", LONG)), WIDE),
    "widen preview": Case(
        "ALTER COLUMN id TYPE LONG",
        change(ColumnChange("id", LONG)),
        {**WIDE, "delta.feature.typeWidening-preview": "supported"},
    ),
    "widen date": Case(
        "ALTER COLUMN d TYPE TIMESTAMP_NTZ",
        change(ColumnChange("d", TIMESTAMP_NTZ)),
        {**WIDE, "delta.feature.timestampNtz": "supported"},
    ),
    "widen varchar": Case("ALTER COLUMN v TYPE VARCHAR(9)", change(ColumnChange("v", PrimitiveType("varchar(9)")))),
    "widen varchar to string": Case("ALTER COLUMN v TYPE STRING", change(ColumnChange("v", STRING))),
    "narrow varchar": Case(
        "ALTER COLUMN v TYPE VARCHAR(3)",
        change(ColumnChange("v", PrimitiveType("varchar(3)"))),
        refused=("NOT_SUPPORTED_CHANGE_COLUMN", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
    ),
    "change type not on": Case(
        "ALTER COLUMN id TYPE LONG", change(ColumnChange("id", LONG)), refused="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    ),
    "narrow": Case(
        "ALTER COLUMN id TYPE SHORT",
        change(ColumnChange("id", SHORT)),
        WIDE,
        refused=("NOT_SUPPORTED_CHANGE_COLUMN", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
    ),
    "change type checked": Case(
        "ALTER COLUMN id TYPE LONG",
        change(ColumnChange("id", LONG)),
        WIDE,
        ("ADD CONSTRAINT c CHECK (hash(id) <> 1)",),
        refused="DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
    ),
    "change type of a struct": Case(
        "ALTER COLUMN s TYPE STRUCT<a: LONG>",
        change(ColumnChange("s", StructType((StructField("a", LONG),)))),
        WIDE,
        refused=("CANNOT_UPDATE_FIELD.STRUCT_TYPE", "DELTA_CANNOT_UPDATE_STRUCT_FIELD"),
    ),
    "comment": Case("ALTER COLUMN name COMMENT 'other'", change(ColumnChange("name", comment="other"))),
    "comment nested": Case("ALTER COLUMN s.a COMMENT 'other'", change(ColumnChange("s.a", comment="other")), NAME),
    "comment of element": Case(
        "ALTER COLUMN l.element COMMENT 'x'",
        change(ColumnChange("l.element", comment="x")),
        refused="DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY",
    ),
    "drop not null": Case("ALTER COLUMN nn DROP NOT NULL", change(ColumnChange("nn", nullable=True))),
    "set not null": Case(
        "ALTER COLUMN id SET NOT NULL",
        change(ColumnChange("id", nullable=False)),
        refused=("_LEGACY_ERROR_TEMP_2330", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
    ),
    "set default": Case("ALTER COLUMN id SET DEFAULT 3 + 4", change(ColumnChange("id", default="3 + 4")), DEFAULTS),
    "set default not on": Case(
        "ALTER COLUMN id SET DEFAULT 3",
        change(ColumnChange("id", default="3")),
        refused="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
    ),
    "drop default": Case(
        "ALTER COLUMN id DROP DEFAULT",
        change(ColumnChange("id", drop_default=True)),
        DEFAULTS,
        ("ALTER COLUMN id SET DEFAULT 3",),
    ),
    "comment keeps default": Case(
        "ALTER COLUMN id COMMENT 'x'", change(ColumnChange("id", comment="x")), DEFAULTS, ("ALTER COLUMN id SET DEFAULT 3",)
    ),
    "move first": Case("ALTER COLUMN name FIRST", change(ColumnChange("name", first=True)), NAME),
    "move after": Case("ALTER COLUMN id AFTER s", change(ColumnChange("id", after="s"))),
    "move nested": Case("ALTER COLUMN s.b FIRST", change(ColumnChange("s.b", first=True))),
    "change two": Case(
        "ALTER COLUMN id COMMENT 'x', name COMMENT 'y'",
        change(ColumnChange("id", comment="x"), ColumnChange("name", comment="y")),
    ),
}


def replaced(ddl: str) -> Callable[[Any], Any]:
    """ddl: parsed by Spark."""

    def run(store: Any) -> Any:
        from pyspark.sql.types import StructType as SparkStruct

        from spark_plugin.schema_conversion import from_spark_schema

        return replace_columns(store, from_spark_schema(SparkStruct.fromDDL(ddl)))

    return run


CASES |= {
    "replace with fewer": Case(
        "REPLACE COLUMNS (p INT, id INT COMMENT 'k', nn INT)", replaced("p INT, id INT COMMENT 'k', nn INT"), NAME
    ),
    "replace with wider": Case("REPLACE COLUMNS (id BIGINT, p INT)", replaced("id BIGINT, p INT"), {**NAME, **WIDE}),
    "replace with fewer unmapped": Case(
        "REPLACE COLUMNS (id INT, p INT)", replaced("id INT, p INT"), refused="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"
    ),
    "replace with others": Case(
        "REPLACE COLUMNS (id INT, p INT, x INT)",
        replaced("id INT, p INT, x INT"),
        NAME,
        refused="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
    ),
}


CASES |= {
    "add constraint": Case("ADD CONSTRAINT Pos CHECK (id > 0)", lambda store: add_constraint(store, "Pos", "id > 0")),
    "add constraint to a table with a feed": Case(
        "ADD CONSTRAINT c CHECK (id > 0)",
        lambda store: add_constraint(store, "c", "id > 0"),
        {"delta.enableChangeDataFeed": "true"},
    ),
    "add constraint that rows break": Case(
        "ADD CONSTRAINT c CHECK (id > 1)",
        lambda store: add_constraint(store, "c", "id > 1"),
        refused="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
    ),
    "add constraint that is there": Case(
        "ADD CONSTRAINT C CHECK (id > 1)",
        lambda store: add_constraint(store, "C", "id > 1"),
        before=("ADD CONSTRAINT c CHECK (id > 0)",),
        refused="DELTA_CONSTRAINT_ALREADY_EXISTS",
    ),
    "add constraint that is a number": Case(
        "ADD CONSTRAINT c CHECK (id + 1)",
        lambda store: add_constraint(store, "c", "id + 1"),
        refused="DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
    ),
    "drop constraint": Case(
        "DROP CONSTRAINT c", lambda store: drop_constraint(store, "c"), before=("ADD CONSTRAINT c CHECK (id > 0)",)
    ),
    "drop constraint that is not there": Case(
        "DROP CONSTRAINT c", lambda store: drop_constraint(store, "c"), refused="DELTA_CONSTRAINT_DOES_NOT_EXIST"
    ),
}


def drop_it(name: str, **options: Any) -> Callable[[Any], Any]:
    return lambda store: drop_feature(store, name, **options)


VECTORS = {"delta.enableDeletionVectors": "true"}
PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"
TRACKING = {"delta.enableRowTracking": "true"}
CASES |= {
    "drop vectors": Case("DROP FEATURE deletionVectors", drop_it("deletionVectors"), VECTORS),
    "drop vectors and history": Case(
        "DROP FEATURE deletionVectors TRUNCATE HISTORY",
        drop_it("deletionVectors", truncate_history=True),
        VECTORS,
        refused="DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
    ),
    "drop widening": Case("DROP FEATURE typeWidening", drop_it("typeWidening"), WIDE, ("ALTER COLUMN id TYPE LONG",)),
    "drop V2 checkpoints": Case("DROP FEATURE v2Checkpoint", drop_it("v2Checkpoint"), {"delta.checkpointPolicy": "v2"}),
    "drop timestamps": Case(
        "DROP FEATURE inCommitTimestamp", drop_it("inCommitTimestamp"), {"delta.enableInCommitTimestamps": "true"}
    ),
    "drop vacuum's check": Case(
        "DROP FEATURE vacuumProtocolCheck",
        drop_it("vacuumProtocolCheck"),
        {"delta.feature.vacuumProtocolCheck": "supported"},
    ),
    "drop row tracking": Case("DROP FEATURE rowTracking", drop_it("rowTracking"), TRACKING),
    "drop constraints": Case(
        "DROP FEATURE checkConstraints",
        drop_it("checkConstraints"),
        before=("ADD CONSTRAINT c CHECK (id > 0)", "DROP CONSTRAINT c"),
    ),
    "drop constraints in use": Case(
        "DROP FEATURE checkConstraints",
        drop_it("checkConstraints"),
        before=("ADD CONSTRAINT c CHECK (id > 0)",),
        refused="DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
    ),
    "drop what another needs": Case(
        "DROP FEATURE domainMetadata",
        drop_it("domainMetadata"),
        TRACKING,
        refused="DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
    ),
    "drop what stays": Case("DROP FEATURE appendOnly", drop_it("appendOnly"), refused="DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
    "drop what is not there": Case(
        "DROP FEATURE rowTracking", drop_it("rowTracking"), refused="DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"
    ),
    "drop what is none": Case(
        "DROP FEATURE nothing", drop_it("nothing"), refused="DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"
    ),
    "drop a property": Case(
        "DROP FEATURE `delta.appendOnly`",
        drop_it("delta.appendOnly"),
        refused="DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY",
    ),
    "drop with history that may stay": Case(
        "DROP FEATURE inCommitTimestamp TRUNCATE HISTORY",
        drop_it("inCommitTimestamp", truncate_history=True),
        {"delta.enableInCommitTimestamps": "true"},
        refused="DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
    ),
}


def last_commit(path: Path) -> dict[str, Any]:
    """The content of the newest commit, without what differs in any two commits."""
    newest = max((path / "_delta_log").glob("*.json"))
    actions: dict[str, Any] = {}
    for line in newest.read_bytes().splitlines():
        actions |= orjson.loads(line)
    info = actions.pop("commitInfo")
    commit_facts: dict[str, Any] = {"operation": info["operation"], "parameters": info["operationParameters"], **actions}
    if "metaData" in commit_facts:
        commit_facts["metaData"]["schemaString"] = orjson.loads(commit_facts["metaData"]["schemaString"])
    if "protocol" in commit_facts:
        commit_facts["protocol"] = {name: sorted(v) if isinstance(v, list) else v for name, v in commit_facts["protocol"].items()}
    configuration = commit_facts.get("metaData", {}).get("configuration", {})
    if PROTECTED in configuration:  # both have made separate commits before
        assert configuration.pop(PROTECTED) == str(int(newest.stem))
    for name in [name for name, value in configuration.items() if value == "false"]:
        del configuration[name]  # turned off, or absent
    commit_facts["parameters"] = {name: _parsed(value) for name, value in commit_facts["parameters"].items()}
    text = orjson.dumps(commit_facts, option=orjson.OPT_SORT_KEYS).decode()
    fresh = re.compile(r"col-[0-9a-f]{8}-[0-9a-f-]{27}")
    names = {name: f"col-{number}" for number, name in enumerate(dict.fromkeys(fresh.findall(text)))}
    result: dict[str, Any] = orjson.loads(fresh.sub(lambda match: names[match.group()], text))
    return result


def _parsed(value: Any) -> Any:
    try:
        return orjson.loads(value)
    except (orjson.JSONDecodeError, TypeError):
        return value


def condition_of(run: Callable[[], Any]) -> str | None:
    try:
        run()
    except PySparkException as error:
        return error.getCondition()
    except Py4JJavaError as error:
        match = re.search(r"\[([A-Z_.]+)\]", str(error.java_exception))
        return None if match is None else match[1]
    except DeltaError as error:
        return error.error_class
    return None


@pytest.fixture(scope="module")
def make(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case, Path], None]:
    """Tables by delta-spark, each made once."""
    paths: dict[Any, Path] = {}

    def table(case: Case, path: Path) -> None:
        key = (tuple(case.properties.items()), case.cluster)
        if key not in paths:
            paths[key] = tmp_path_factory.mktemp("tables") / "t"
            name = f"delta.`{paths[key]}`"
            layout = "CLUSTER BY (id)" if case.cluster else "PARTITIONED BY (p)"
            properties = ", ".join(f"'{key}' = '{value}'" for key, value in case.properties.items())
            properties = f"TBLPROPERTIES ({properties})" if properties else ""
            spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING delta {layout} {properties}")
            spark.sql(f"INSERT INTO {name} SELECT {ROW}")
        shutil.copytree(paths[key], path)

    return table


@pytest.mark.parametrize("name", CASES)
def test_both_commit_the_same_or_refuse_by_the_same_name(
    name: str, spark: SparkSession, tmp_path: Path, make: Callable[[Case, Path], None]
) -> None:
    case, theirs, ours = CASES[name], tmp_path / "theirs", tmp_path / "ours"
    make(case, theirs)
    for statement in case.before:
        spark.sql(f"ALTER TABLE delta.`{theirs}` {statement}")
    shutil.copytree(theirs, ours)
    their_condition = condition_of(lambda: spark.sql(f"ALTER TABLE delta.`{theirs}` {case.theirs}"))
    our_condition = condition_of(lambda: case.ours(LocalStore(str(ours))))
    if case.refused is not None:
        expected = (case.refused, case.refused) if isinstance(case.refused, str) else case.refused
        assert (their_condition, our_condition) == expected
        if "WAIT" not in expected[1]:
            assert PlainTable(str(ours)).version == 1 + len(case.before)
        return
    assert (their_condition, our_condition) == (None, None)
    assert last_commit(ours) == last_commit(theirs)
    spark.sql(f"INSERT INTO delta.`{ours}` SELECT * FROM delta.`{theirs}`")  # delta-spark writes and reads the rows of both
    assert difference(spark.read.format("delta").load(str(ours)).toArrow(), PlainTable(str(ours)).to_arrow()) is None
