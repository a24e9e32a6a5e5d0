"""Makes tables from a directory of Parquet files, or from another table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from pydelta_cli import spark as on_spark
from pydelta_cli.parameters import At, Path, Place, Properties, Spark, Version, check_one_version, pairs_of
from pydelta_cli.run import Form, Run, say

if TYPE_CHECKING:
    from delta_py.types.schema import StructType

PartitionedBy = Annotated[
    str | None,
    typer.Option("--partitioned-by", metavar="DDL", help="Columns in the names of directories: 'day date, n int'."),
]
NoStatistics = Annotated[bool, typer.Option("--no-statistics", help="Do not read statistics from the footers of the files.")]
Target = Annotated[str, typer.Argument(metavar="TARGET", help="The path of the clone: a directory or URL.")]
Shallow = Annotated[bool, typer.Option("--shallow", help="Use the same files, instead of copies of them.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace an existing table at the target; its rows are lost.")]


def convert(
    run: Run,
    path: Place,
    partitioned_by: PartitionedBy = None,
    no_statistics: NoStatistics = False,
    property_: Properties = None,
    spark: Spark = False,
) -> None:
    """Make a directory of Parquet files a table, by writing a log next to them."""
    from delta_py.table import DeltaTable

    path = run.place(path)
    if spark:
        if no_statistics or property_:
            raise typer.BadParameter("--no-statistics and --property go without --spark.", param_hint="--spark")
        on_spark.convert(run, path, partitioned_by)
        table = run.table(path)
    else:
        table = DeltaTable.convert(
            path,
            None if partitioned_by is None else _partition_schema(partitioned_by),
            collect_stats=not no_statistics,
            configuration=pairs_of(property_, "--property"),
            session_timezone=run.zone,
            storage_options=run.storage,
        )
    form = {"version": table.version, "files": table.snapshot.num_files}
    run.answer(form, lambda: say(f"{path} is a Delta table: {_state_text(form)}."))


# The type of a partition column may have parameters, and no fields: decimal(10, 2).
_NAME_AND_TYPE = re.compile(r"(?P<name>`(?:[^`]|``)+`|[^\s`,]+)\s+(?P<type>\w+\s*(?:\([\d\s,]*\))?)\s*(?:,|$)")


def _partition_schema(ddl: str) -> StructType:
    """`day date, n int` -> fields. Raises typer.BadParameter, and ExpressionError for an invalid type."""
    from delta_py.expressions.parse import parse_expression, type_of
    from delta_py.types.names import unquoted
    from delta_py.types.schema import StructField, StructType

    fields, rest = [], ddl.strip()
    while rest:
        column = _NAME_AND_TYPE.match(rest)
        if column is None:
            raise typer.BadParameter(f"{rest!r} is no NAME TYPE", param_hint="--partitioned-by")
        # The type of a cast of NULL is the named type: so the SQL parser also parses, and checks, the name of a type.
        cast = parse_expression(f"CAST(NULL AS {column['type']})", StructType(()))
        fields.append(StructField(unquoted(column["name"]), type_of(cast, StructType(()))))
        rest = rest[column.end() :].strip()
    return StructType(tuple(fields))


def clone(
    run: Run,
    path: Path,
    target: Target,
    version: Version = None,
    at: At = None,
    shallow: Shallow = False,
    replace: Replace = False,
    property_: Properties = None,
    spark: Spark = False,
) -> None:
    """Make a table with the rows of this one at another path."""
    target, properties = run.place(target), pairs_of(property_, "--property")
    if spark:
        check_one_version(version, at)
        on_spark.clone(run, path, target, version, at, is_shallow=shallow, replace=replace, properties=properties)
        cloned = run.table(target)
    else:
        source = run.table(path, version, at)
        cloned = source.clone(target, shallow=shallow, replace=replace, properties=properties, storage_options=run.storage)
    form = {"target": target, "version": cloned.version, "files": cloned.snapshot.num_files, "shallow": shallow}
    kind = "shallow" if shallow else "deep"
    run.answer(form, lambda: say(f"{target} is a {kind} clone of {path}: {_state_text(form)}."))


def _state_text(form: Form) -> str:
    from delta_py.report.words import count_text

    return f"version {form['version']}, {count_text(form['files'], 'file')}"
