"""Describes a table from its log: schema, history, detail, features, streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pydelta_cli.parameters import At, Path, Place, Version
from pydelta_cli.run import Run

if TYPE_CHECKING:
    from delta_py.protocol.actions import Protocol
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
    run.answer(form, {"columns": ("name", "type", "nullable", "comment")})


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

    rows = run.rows(commits(run.store(path), limit))
    form = {"commits": rows}
    run.answer(form, {"commits": ("version", "timestamp", "userName", "operation", "operationParameters", "operationMetrics")})


def detail(run: Run, path: Path, version: Version = None, at: At = None) -> None:
    """Name, path, size, properties and protocol, as in DESCRIBE DETAIL."""
    table = run.table(path, version, at)
    run.answer({"version": table.version, **run.rows(table.detail())[0]})


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
    run.answer(form)


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
    run.answer(form)
