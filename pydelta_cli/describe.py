"""Describes a table from its log: schema, history, detail, features, streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pydelta_cli.formats.commit_text import commit_details
from pydelta_cli.formats.terminal_text import cell, printable
from pydelta_cli.parameters import At, Path, Place, Version
from pydelta_cli.run import Form, Run, say

if TYPE_CHECKING:
    from delta_py.protocol.actions import Protocol
    from delta_py.storage.store import ObjectStore
    from delta_py.table import DeltaTable
    from delta_py.types.schema import StructType

Limit = Annotated[int | None, typer.Option("--limit", min=0, metavar="N", help="Only the newest N commits.")]


def schema(run: Run, path: Path, version: Version = None, at: At = None) -> None:
    """Columns, with types, comments, and the rest of their metadata in the log."""
    table = run.table(path, version, at)
    metadata = table.metadata
    form = {
        "version": table.version,
        "partition_columns": list(metadata.partition_columns),
        "columns": schema_form(table.struct_type),
    }
    run.answer(form, lambda: _show_schema(run, form))


def _show_schema(run: Run, form: Form) -> None:
    from delta_py.report.words import count_text
    from pydelta_cli.formats.text_tables import Column

    columns = [Column("column"), Column("type"), Column("nullable"), Column("comment", is_prose=True)]
    rows = [
        (column["name"], column["type"], None if column["nullable"] else "no", column["comment"]) for column in form["columns"]
    ]
    run.print_table(columns, rows)
    partition_columns = printable(", ".join(form["partition_columns"]))
    partitioned = f", partitioned by {partition_columns}" if partition_columns else ""
    say(f"Version {form['version']} has {count_text(len(rows), 'column')}{partitioned}.")


def schema_form(columns: StructType) -> list[dict[str, Any]]:
    """type: its SQL name. metadata: everything in the column's metadata except the comment."""
    from delta_py.types.schema import type_name

    return [
        {
            "name": column.name,
            "type": type_name(column.data_type),
            "nullable": column.nullable,
            "comment": column.metadata.get("comment"),
            "metadata": {name: value for name, value in column.metadata.items() if name != "comment"},
        }
        for column in columns.fields
    ]


def history(run: Run, path: Place, limit: Limit = None) -> None:
    """Commits that the log still has, newest first."""
    from delta_py.log.history import history as commits

    store = run.store(path)
    if run.as_json:
        run.write_json({"commits": run.rows(commits(store, limit))})
    else:
        _show_history(run, store, limit)


def _show_history(run: Run, store: ObjectStore, limit: int | None) -> None:
    """A terminal gets the newest commits only, if there is no limit."""
    from delta_py.log.history import commit_count
    from delta_py.log.history import history as commits
    from delta_py.report.words import count_text
    from pydelta_cli.formats.text_tables import Column

    shown_limit = run.row_limit if limit is None else limit
    table = commits(store, None if shown_limit is None else shown_limit + 1)
    newest = table if shown_limit is None else table.slice(0, shown_limit)
    columns = [Column("version", is_number=True), Column("time"), Column("user"), Column("operation")]
    columns.append(Column("details", is_prose=True))
    times = newest["timestamp"].cast("int64").to_pylist()
    rows = [
        (
            str(commit["version"]),
            run.time_text(None if time is None else time // 1_000),
            commit["userName"],
            commit["operation"],
            commit_details(dict(commit["operationParameters"] or ()), dict(commit["operationMetrics"] or ())),
        )
        for commit, time in zip(newest.to_pylist(), times, strict=True)
    ]
    run.print_table(columns, rows)
    if newest.num_rows < table.num_rows:
        count = commit_count(store) - newest.num_rows
        say(f"and {count_text(count, 'more commit')} (--limit N shows more)")


def detail(run: Run, path: Path, version: Version = None, at: At = None) -> None:
    """Name, path, size, properties and protocol, as in DESCRIBE DETAIL."""
    table = run.table(path, version, at)
    form = {"version": table.version, **run.rows(table.detail())[0]}
    run.answer(form, lambda: _show_detail(run, table, form))


def _show_detail(run: Run, table: DeltaTable, form: Form) -> None:
    from delta_py.report.words import count_text
    from delta_py.types.sizes import bytes_text

    properties = [f"{name} = {cell(value)}" for name, value in form["properties"].items()]
    created_ms, modified_ms = table.metadata.created_time_ms, table.snapshot.timestamp_ms
    run.print_values(
        {
            "name": form["name"],
            "description": form["description"],
            "location": form["location"],
            "id": form["id"],
            "version": str(form["version"]),
            "created": run.time_text(created_ms),
            "last modified": run.time_text(modified_ms),
            "files": f"{count_text(form['numFiles'], 'file')}, {bytes_text(form['sizeInBytes'])}",
            "partitioned by": ", ".join(form["partitionColumns"]) or None,
            "clustered by": ", ".join(form["clusteringColumns"]) or None,
            "protocol": f"reader {form['minReaderVersion']}, writer {form['minWriterVersion']}",
            "features": ", ".join(form["tableFeatures"]) or None,
            "properties": "\n".join(properties) or None,
        }
    )


def features(run: Run, path: Path, version: Version = None, at: At = None) -> None:
    """Table features: which of them readers and writers must support, and whether pydelta does."""
    table = run.table(path, version, at)
    protocol = table.protocol
    form = {
        "version": table.version,
        "min_reader_version": protocol.min_reader_version,
        "min_writer_version": protocol.min_writer_version,
        "features": list(_features(table.snapshot.config.features, protocol)),
    }
    run.answer(form, lambda: _show_features(run, form))


def _show_features(run: Run, form: Form) -> None:
    from pydelta_cli.formats.text_tables import Column

    rows = [
        (
            feature["name"],
            "readers and writers" if feature["for_readers"] else "writers",
            "reads and writes" if feature["can_write"] else "only reads" if feature["can_read"] else "cannot read",
            None if feature["is_listed"] else "by the version",
        )
        for feature in form["features"]
    ]
    columns = [Column("feature"), Column("must be supported by"), Column("pydelta"), Column("why the table has it")]
    run.print_table(columns, rows)
    versions = f"reader {form['min_reader_version']}, writer {form['min_writer_version']}"
    say(f"Protocol of version {form['version']}: {versions}.")


def _features(names: Any, protocol: Protocol) -> Iterator[dict[str, Any]]:
    from delta_py.protocol.features import FEATURES

    for name in sorted(names):
        feature = FEATURES.get(name)
        yield {
            "name": name,
            "is_listed": name in {*(protocol.reader_features or ()), *(protocol.writer_features or ())},
            "for_readers": name in (protocol.reader_features or ()) or (feature is not None and feature.reader),
            "can_read": feature is not None and feature.read,
            "can_write": feature is not None and feature.write,
        }


def streams(run: Run, path: Path, version: Version = None, at: At = None) -> None:
    """Transaction ids that streams and writers have recorded, and the last transaction of each."""
    table = run.table(path, version, at)
    transactions = sorted(table.snapshot.set_transactions().values(), key=lambda transaction: transaction.app_id)
    form = {
        "version": table.version,
        "streams": [
            {"app_id": one.app_id, "last_version": one.version, "last_updated": run.time(one.last_updated_ms)}
            for one in transactions
        ],
    }
    rows = [(one.app_id, f"{one.version:,}", run.time_text(one.last_updated_ms)) for one in transactions]
    run.answer(form, lambda: _show_streams(run, table.version, rows))


def _show_streams(run: Run, version: int, rows: Sequence[Sequence[str | None]]) -> None:
    from delta_py.report.words import count_text
    from pydelta_cli.formats.text_tables import Column

    if not rows:
        say(f"Version {version} has no transactions of streams or other writers.")
        return
    columns = [Column("application"), Column("last transaction", is_number=True), Column("last updated")]
    run.print_first(columns, rows, "application")
    say(f"Version {version} has transactions of {count_text(len(rows), 'application')}.")
