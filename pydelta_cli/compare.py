"""The differences between two versions of a table, or between two tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pydelta_cli.describe import schema_form
from pydelta_cli.formats.terminal_text import cell, printable
from pydelta_cli.parameters import VerifyChecksums, columns_of
from pydelta_cli.run import FOUND, UNDECIDED, Form, Run, say

if TYPE_CHECKING:
    from delta_py.protocol.actions import Protocol
    from delta_py.table import DeltaTable

A = Annotated[str, typer.Argument(metavar="A", help="A table's directory or URL; PATH@v12 names a version.")]
B = Annotated[str, typer.Argument(metavar="B", help="The other table or version.")]
Key = Annotated[
    str | None, typer.Option("--key", metavar="NAMES", help="Compare rows too: those with the same values of these columns.")
]

_BY_FILES, _BY_COMMITS, _BY_FEED, _BY_ROWS, _NOT_COMPARED = "files", "commits", "change feed", "rows of files", "nothing"


def diff(run: Run, a: A, b: B, key: Key = None, verify_checksums: VerifyChecksums = False) -> int:
    """Compare schema, properties, protocol and rows of two versions or tables. Exits with 1 if they differ, 4 if it is not known.

    Rows are compared by --key. Rows of two versions of one table are also compared by its files and commits, by the change feed
    if it is on, and else by the rows of the files that only one version has.
    """
    from pydelta_cli.row_compare import count_rows, rows_by_key

    first_table, second_table = run.table(a), run.table(b)
    keys = columns_of(key)
    if keys:
        rows = rows_by_key(first_table, second_table, keys, run.zone, verify_checksums=verify_checksums)
    else:
        rows = _rows_by_log(first_table, second_table, run.zone, verify_checksums=verify_checksums)
    form: dict[str, Any] = {
        "a": {"path": first_table.snapshot.table_root, "version": first_table.version, "rows": count_rows(first_table)},
        "b": {"path": second_table.snapshot.table_root, "version": second_table.version, "rows": count_rows(second_table)},
        "columns": _changes(
            *({column["name"]: column for column in schema_form(t.struct_type)} for t in (first_table, second_table))
        ),
        "partition_columns": _pair(*(list(t.metadata.partition_columns) for t in (first_table, second_table))),
        "properties": _changes(*(dict(t.metadata.configuration) for t in (first_table, second_table))),
        "protocol": _changes(_protocol_form(first_table.protocol), _protocol_form(second_table.protocol)),
        "rows": rows,
    }
    differs = any((form["columns"], form["partition_columns"], form["properties"], form["protocol"]))
    differs |= form["a"]["rows"] != form["b"]["rows"] or any(rows[name] for name in ("inserted", "deleted", "updated"))
    is_decided = differs or rows["compared_by"] != _NOT_COMPARED
    form = {"differs": differs if is_decided else None, **form}
    run.answer(form, lambda: _show_difference(run, form))
    return FOUND if differs else 0 if is_decided else UNDECIDED


def _show_difference(run: Run, form: Form) -> None:
    from delta_py.report.words import count_text
    from pydelta_cli.formats.text_tables import Column

    for name in ("a", "b"):
        say(f"{name}: {form[name]['path']}, version {form[name]['version']}, {count_text(form[name]['rows'], 'row')}")
    for title in ("columns", "properties", "protocol"):
        if form[title]:
            say("")
            rows = [(change["name"], cell(change["a"]), cell(change["b"])) for change in form[title]]
            run.print_table([Column(title), Column("a"), Column("b")], rows, null="(none)")
    if pair := form["partition_columns"]:
        a, b = (printable(", ".join(pair[name])) or "none" for name in ("a", "b"))
        say(f"\npartition columns: a has {a}, b has {b}")
    rows_form = form["rows"]
    say("")
    if rows_form["compared_by"] == _NOT_COMPARED:
        say(f"Rows were not compared. {rows_form['why_not']}", colour="yellow")
    else:
        kinds = ("inserted", "deleted", "updated")
        counts = [f"{count_text(rows_form[kind], 'row')} {kind}" for kind in kinds if rows_form[kind]]
        say(f"From a to b: {', '.join(counts) or 'no row changed'} (compared by {rows_form['compared_by']}).")
    if form["differs"] is None:
        say("It is not known whether a and b differ.", colour="yellow")
    else:
        say("a and b differ." if form["differs"] else "a and b are the same.")


def _changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The values that differ, in the order of a, then those that only b has. None for a missing value."""
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


def _rows_by_log(a: DeltaTable, b: DeltaTable, zone: str, *, verify_checksums: bool) -> dict[str, Any]:
    """Counts of changes from a to b; None if the rows were not compared, with the reason."""
    from pydelta_cli.row_compare import files_apart, has_only_moved_rows, other_columns, rows_of_files

    if a.snapshot.table_root != b.snapshot.table_root:
        return _not_compared("These are two tables: name their key (--key) to compare rows.")
    if changed_columns := other_columns(a.struct_type, b.struct_type):
        return _not_compared(
            f"Columns of a and b have the same name and are not the same, so that the log does not tell their values: "
            f"{', '.join(changed_columns)}. Name a key (--key)."
        )
    only_a, only_b = files_apart(a, b)
    if not len(only_a) and not len(only_b):
        return _compared(_BY_FILES, 0, 0)
    if has_only_moved_rows(a, b):
        return _compared(_BY_COMMITS, 0, 0)
    counts = _changes_of_feed(a, b, verify_checksums=verify_checksums)
    if isinstance(counts, Counter):
        return _compared(_BY_FEED, counts["insert"], counts["delete"], counts["update_postimage"])
    apart = f"{len(only_a)} file{'' if len(only_a) == 1 else 's'} of a and {len(only_b)} of b are not in the other."
    if a.struct_type != b.struct_type:
        return _not_compared(f"{apart} {counts} Their rows are not compared, as the columns differ. Name a key (--key).")
    surplus = rows_of_files(a, b, only_a, only_b, zone, verify_checksums=verify_checksums)
    if surplus is None:
        return _not_compared(f"{apart} {counts} Their rows are too many to be compared in memory. Name a key (--key).")
    return _compared(_BY_ROWS, *surplus)


def _changes_of_feed(a: DeltaTable, b: DeltaTable, *, verify_checksums: bool) -> Counter[str] | str:
    """The number of changes of each type, or why it is not known."""
    from delta_py.errors import ChangeDataFeedError, LogFileNotFoundError

    if a.version > b.version:
        return "The change feed goes from old to new."
    counts = Counter[str]()
    try:
        first, last = a.version + 1, b.version
        for batch in b.changes(
            starting_version=first, ending_version=last, columns=["_change_type"], verify_checksums=verify_checksums
        ):
            for kind in batch["_change_type"].value_counts():
                counts[kind["values"].as_py()] += kind["counts"].as_py()
    except (ChangeDataFeedError, LogFileNotFoundError) as error:
        return str(error)
    return counts


def _compared(by: str, inserted: int, deleted: int, updated: int = 0) -> dict[str, Any]:
    return {"compared_by": by, "inserted": inserted, "deleted": deleted, "updated": updated, "why_not": None}


def _not_compared(why: str) -> dict[str, Any]:
    return {"compared_by": _NOT_COMPARED, "inserted": None, "deleted": None, "updated": None, "why_not": why}
