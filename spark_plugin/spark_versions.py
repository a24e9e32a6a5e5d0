"""The differences between versions of Spark, and the version that introduced each.

The rest of pydelta is written for the newest version of Spark. If an older version lacks something, a function or class here does
the same. `CAPABILITIES` lists what users can do with each version. The table in docs/spark-versions-and-connect.md is generated
from it, and tests try each capability on the version that runs them.

Java code that differs is in folders like spark_plugin/java/spark_4_1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql.pandas import types as pandas_types

from delta_py.errors import UnsupportedOperationError
from spark_plugin.java.supported_versions import SUPPORTED, minor_version

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


# ---------------------------------------------------------------- pyspark


IS_41 = minor_version(pyspark.__version__) < (4, 2)
"""Whether the pyspark of this process is the oldest supported one."""

CLIENTS_CLONE_SESSIONS = not IS_41
"""Whether a client of Spark Connect has `cloneSession`, which came with pyspark 4.2."""

HAS_INSERT_CLAUSES = not IS_41
"""Whether Spark's parser knows REPLACE USING, REPLACE ON and WITH SCHEMA EVOLUTION of INSERT, which came with Spark 4.2."""

WINDOW_IN_FILTER_41 = "_LEGACY_ERROR_TEMP_1034"
"""The error condition with which Spark 4.1 refuses window functions in filters. Spark 4.2 has one with a name."""


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark takes rows of a Python source: timestamps are in UTC.

    pyspark 4.2 requires the time zone as a parameter. 4.1 uses UTC by default, and has no such parameter.
    """
    to_arrow: Any = pandas_types.to_arrow_schema
    arrow_schema: pa.Schema = to_arrow(schema) if IS_41 else to_arrow(schema, timezone="UTC")
    return arrow_schema


# pyspark 4.2 introduced limits for the batches of a Python source. With 4.1 these classes replace them, because
# PythonSourceStream.java calls the reader of a stream with limits in every version.
if TYPE_CHECKING or not IS_41:
    from pyspark.sql.streaming.datasource import ReadAllAvailable as ReadAllAvailable
    from pyspark.sql.streaming.datasource import ReadLimit as ReadLimit
    from pyspark.sql.streaming.datasource import ReadMaxBytes as ReadMaxBytes
    from pyspark.sql.streaming.datasource import ReadMaxFiles as ReadMaxFiles
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as SupportsTriggerAvailableNow
else:

    class ReadLimit:
        """How much a batch may read."""

    @dataclass
    class ReadAllAvailable(ReadLimit):
        """No limit: all available data."""

    @dataclass
    class ReadMaxFiles(ReadLimit):
        max_files: int

    @dataclass
    class ReadMaxBytes(ReadLimit):
        max_bytes: int

    class SupportsTriggerAvailableNow:
        """The trigger AvailableNow reads the data that existed when the query started, in several batches."""


def json_of_read_limit(limit: ReadLimit) -> str:
    """Return what a stream's process writes to the JVM for the limit of its batches."""
    fields: Any = limit
    return json.dumps(asdict(fields) | {"_type": type(limit).__name__})


def read_limit_of_json(text: str) -> ReadLimit:
    """Parse the limit that `json_of_read_limit` or PythonSourceStream.java wrote."""
    fields = json.loads(text)
    kinds: dict[str, type[Any]] = {kind.__name__: kind for kind in (ReadAllAvailable, ReadMaxFiles, ReadMaxBytes)}
    limit: ReadLimit = kinds[fields.pop("_type")](**fields)
    return limit


# ---------------------------------------------------------------- SQL


# Clauses of Spark 4.2: a pattern that finds the clause, its name for messages, and what to use in older versions.
_NEWER_CLAUSES = (
    (re.compile(r"\bCHANGES\s+FROM\b", re.IGNORECASE), "CHANGES FROM", "the function table_changes or the option readChangeFeed"),
    (re.compile(r"\bREPLACE\s+USING\b", re.IGNORECASE), "INSERT ... REPLACE USING", "the option replaceUsing of a write"),
    (re.compile(r"\bREPLACE\s+ON\b", re.IGNORECASE), "INSERT ... REPLACE ON", "the option replaceOn of a write"),
    (
        re.compile(r"\bINSERT\s+WITH\s+SCHEMA\s+EVOLUTION\b", re.IGNORECASE),
        "INSERT WITH SCHEMA EVOLUTION",
        "the option mergeSchema of a write",
    ),
)


def hint_at_newer_clause(text: str, version: str) -> str | None:
    """Return what to use in place of a clause that Spark's parser does not know before 4.2, or None if the statement has no such
    clause.

    text: a statement that the parser refused. version: of the Spark that refused it.
    """
    if minor_version(version) >= (4, 2):
        return None
    for clause, name, alternative in _NEWER_CLAUSES:
        if clause.search(text):
            return f"{name} came with Spark 4.2, and this is Spark {version}. Use {alternative}."
    return None


_QUOTED_OR_BUILTIN = re.compile(r"'[^']*'|`(?:[^`]|``)*`|system\.builtin\.`(\w+)`", re.ASCII)
# How DESCRIBE FUNCTION begins the line with the class of one of Spark's own functions.
_CLASSES_OF_BUILTINS = "Class: org.apache.spark.sql.catalyst.expressions."


def resolvable_rule_text(spark: Any, text: str) -> str:
    """Return the text of a rule or a default with function names that the session's Spark can resolve.

    text: as expressions/sql_text/spark_rules.py prints it, with functions as ``system.builtin.`name` ``. Spark 4.1 cannot resolve
    these. It gets ``name`` alone, which is Spark's own function unless the session has registered another one by that name.

    Raises UnsupportedOperationError on Spark 4.1 if the session has registered another function by one of the names.
    """
    names = sorted({match[1] for match in _QUOTED_OR_BUILTIN.finditer(text) if match[1]})
    if not names or minor_version(spark.version) >= (4, 2):
        return text
    for name in names:
        description_lines = [row[0] for row in spark.sql(f"DESCRIBE FUNCTION `{name}`").collect()]
        if not any(line.startswith(_CLASSES_OF_BUILTINS) for line in description_lines):
            raise UnsupportedOperationError(
                f"The session has registered a function {name}, and a rule or a default of the table needs Spark's own function "
                f"of that name. Spark {spark.version} cannot tell them apart; Spark 4.2 can. Nothing was written. Register the "
                "function by another name in a new session."
            )
    return _QUOTED_OR_BUILTIN.sub(lambda match: f"`{match[1]}`" if match[1] else match[0], text)


# ---------------------------------------------------------------- what users can do


@dataclass(frozen=True, slots=True)
class Capability:
    """One row of the table in docs/spark-versions-and-connect.md, tried by tests/spark/session/test_spark_capabilities.py.

    without: the minor versions that lack it, and what users can do there instead.
    """

    name: str
    text: str
    without: Mapping[tuple[int, int], str] = field(default_factory=dict)


CAPABILITIES = (
    Capability("batches", "batch reads and writes"),
    Capability("row_changes", "DELETE, UPDATE, MERGE, by SQL and by `DeltaTable`"),
    Capability("sql_names", "SQL with tables by path and by name, at any version"),
    Capability("procedures", "`CALL pydelta.system...`"),
    Capability("procedure_parameters", "`DESCRIBE PROCEDURE` with parameters", {(4, 1): "name and description"}),
    Capability(
        "changes_from",
        "`t CHANGES FROM VERSION 1` in SQL",
        {(4, 1): "a syntax error with a hint; `table_changes` and `readChangeFeed` work"},
    ),
    Capability("views_of_changes", "`CREATE VIEW` over `table_changes`", {(4, 1): "temporary views only"}),
    Capability(
        "insert_clauses",
        "`INSERT ... REPLACE USING`, `REPLACE ON` and `INSERT WITH SCHEMA EVOLUTION`",
        {(4, 1): "a syntax error with a hint; the options of writes work"},
    ),
    Capability(
        "rules_of_spark",
        "rules of tables with functions such as `hash`, where the session has registered its own function of that name",
        {(4, 1): "refused"},
    ),
    Capability("streams", "streams, with limits for their batches"),
    Capability("streams_without_register", "streaming reads without `register`, and over Spark Connect", {(4, 1): "refused"}),
    Capability("pruning", "pruning of files, columns and joins"),
    Capability("columnar", "columnar reader"),
    Capability(
        "udf_columns",
        "columns for queries with Python UDFs",
        {(4, 2): "rows, unless `spark.sql.execution.arrow.pythonUDF.columnarInput.enabled` is false"},
    ),
    Capability(
        "cut_batches",
        "reads by rows where `spark.sql.execution.arrow.maxRecordsPerOutputBatch` is set",
        {(4, 1): "refused", (4, 2): "refused"},
    ),
)


def capability_table() -> str:
    """Return CAPABILITIES as a Markdown table, with a column for each supported minor version."""
    heads = ["", *(f"Spark {major}.{minor}" for major, minor in SUPPORTED)]
    rows = [[capability.text, *(capability.without.get(version, "yes") for version in SUPPORTED)] for capability in CAPABILITIES]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)
