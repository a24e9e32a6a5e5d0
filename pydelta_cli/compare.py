"""What two versions of a table, or two tables, have not in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pydelta_cli.describe import schema_form
from pydelta_cli.parameters import columns_of
from pydelta_cli.run import FOUND, Run

if TYPE_CHECKING:
    from delta_py.protocol.actions import Protocol
    from delta_py.table import DeltaTable

A = Annotated[str, typer.Argument(metavar="A", help="A table's directory or URL; PATH@v12 names a version.")]
B = Annotated[str, typer.Argument(metavar="B", help="The other one.")]
Key = Annotated[
    str | None, typer.Option("--key", metavar="NAMES", help="Compare rows too: those with the same values of these columns.")
]

_BY_FEED, _BY_KEY, _NOT_COMPARED = "change feed", "key", "nothing"


def diff(run: Run, a: A, b: B, key: Key = None) -> int:
    """Schema, properties, protocol and rows of two versions or tables. Exits with 1 where they differ.

    Rows are compared by the change feed between two versions of one table that has it on, or by --key.
    """
    from pydelta_cli.row_compare import count_rows, rows_by_key

    one, other = run.table(a), run.table(b)
    keys = columns_of(key)
    rows = rows_by_key(one, other, keys, run.zone) if keys else _rows_by_feed(one, other)
    form: dict[str, Any] = {
        "a": {"path": one.snapshot.table_root, "version": one.version, "rows": count_rows(one)},
        "b": {"path": other.snapshot.table_root, "version": other.version, "rows": count_rows(other)},
        "columns": _changes(*({column["name"]: column for column in schema_form(t.struct_type)} for t in (one, other))),
        "partition_columns": _pair(*(list(t.metadata.partition_columns) for t in (one, other))),
        "properties": _changes(*(dict(t.metadata.configuration) for t in (one, other))),
        "protocol": _changes(_protocol_form(one.protocol), _protocol_form(other.protocol)),
        "rows": rows,
    }
    differs = any((form["columns"], form["partition_columns"], form["properties"], form["protocol"]))
    differs |= form["a"]["rows"] != form["b"]["rows"] or any(rows[name] for name in ("inserted", "deleted", "updated"))
    run.answer({"differs": differs, **form})
    return FOUND if differs else 0


def _changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is not the same in both, in the order of a, then what only b has. None for what is not there."""
    names = [*a, *(name for name in b if name not in a)]
    return [{"name": name, "a": a.get(name), "b": b.get(name)} for name in names if a.get(name) != b.get(name)]


def _pair(a: Any, b: Any) -> dict[str, Any] | None:
    return None if a == b else {"a": a, "b": b}


def _protocol_form(protocol: Protocol) -> dict[str, Any]:
    return {
        "min_reader_version": protocol.min_reader_version,
        "min_writer_version": protocol.min_writer_version,
        "reader_features": sorted(protocol.reader_features or ()),
        "writer_features": sorted(protocol.writer_features or ()),
    }


def _rows_by_feed(a: DeltaTable, b: DeltaTable) -> dict[str, Any]:
    """Counts of changes from a to b; None where nothing compared the rows, with the reason."""
    from delta_py.errors import ChangeDataFeedError

    if a.snapshot.table_root != b.snapshot.table_root:
        return _not_compared("These are two tables: name their key (--key) to compare rows.")
    if a.version > b.version:
        return _not_compared("The first version is the newer one, and the change feed goes from old to new.")
    if a.version == b.version:
        return {"compared_by": _BY_FEED, "inserted": 0, "deleted": 0, "updated": 0, "why_not": None}
    counts = Counter[str]()
    try:
        for batch in b.changes(starting_version=a.version + 1, ending_version=b.version, columns=["_change_type"]):
            for kind in batch["_change_type"].value_counts():
                counts[kind["values"].as_py()] += kind["counts"].as_py()
    except ChangeDataFeedError as error:
        return _not_compared(f"{error} Name a key (--key) to compare rows.")
    changed = {"inserted": counts["insert"], "deleted": counts["delete"], "updated": counts["update_postimage"]}
    return {"compared_by": _BY_FEED, **changed, "why_not": None}


def _not_compared(why: str) -> dict[str, Any]:
    return {"compared_by": _NOT_COMPARED, "inserted": None, "deleted": None, "updated": None, "why_not": why}
