"""Tables with one damaged or hostile file: read in every way, then changed, and read again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa

from delta_py import DeltaTable, write_delta
from delta_py.changes.change_feed import plan_changes
from delta_py.definition.detail import detail_rows
from delta_py.errors import DeltaError
from delta_py.expressions.parse import parse_predicate
from delta_py.parquet.file_reader import read_files
from delta_py.row_changes.dml import Dml
from delta_py.storage.local import LocalStore
from delta_py.vacuum.vacuum import Vacuum, VacuumRequest, vacuum
from delta_py.vacuum.vacuum_paths import vector_files
from delta_py.write.task_changes import DELETED
from tests.fuzz.base_tables import COMMITS, made_tables
from tests.fuzz.cases import Case, Mutation, Outcome, fresh, made, observed
from tests.fuzz.child import in_child
from tests.fuzz.table_mutations import mutate
from tests.support.tables.plain_dml import changed, run, target_rows

NEW_ID, GONE_ID = 999_999, 6
_FILTER = "id > 5 AND part = 'p1'"
_NO_RETENTION = VacuumRequest(retention_hours=0, check_retention=False, quarantine_hours=0)


class TableTarget:
    def __init__(self, directory: Path) -> None:
        self._tables = made_tables(directory)
        self._views = {name: in_child(partial(views, path)).value for name, path in self._tables.items()}
        self._needed = {name: in_child(partial(needed, path)).value for name, path in self._tables.items()}

    def run(self, case: Case) -> Outcome:
        rng, place = case.rng, fresh(case.place)
        name = rng.choice(list(self._tables))
        table = place / "table"
        copytree(self._tables[name], table)
        mutation = Mutation(**made(in_child(lambda: asdict(mutate(table, rng))), case))  # type: ignore[arg-type]
        finding = observed(lambda: use(table, self._views[name], self._needed[name], mutation), place, "table")
        return case.outcome(name, mutation, finding)


# ---------------------------------------------------------------- in the child


def use(table: Path, expected: dict[str, Any], needed: list[str], mutation: Mutation) -> tuple[str, str]:
    """(kind, detail) of a Finding. needed: files that readers of the undamaged table open."""
    actual = views(table)
    rows = actual["rows"]
    kind = "error" if rows is None else "same" if rows == expected["rows"] else "different"
    detail = actual["why"].get("rows") or f"{len(rows)} rows of {len(expected['rows'])}"
    if rows is not None and not set(actual["filter"] or ()) <= set(rows):
        return "wrong", f"{detail}; rows of the filter that the table has not: {set(actual['filter']) - set(rows)}"
    other = [name for name in expected if name != "why" and actual[name] not in (None, expected[name])]
    if other and not mutation.means_itself:
        return "wrong", f"{detail}; {other[0]}: {actual[other[0]]} and not {expected[other[0]]}"
    endangered_files = [] if mutation.means_itself else sorted(set(needed) & set(would_go(table)))
    if endangered_files:
        return "vacuum took", f"{detail}; {endangered_files}"
    broken, steps = change(table, rows, expected["rows"])
    return broken or kind, f"{detail}; {other and f'also {other}; '}{steps}"


def views(table: Path) -> dict[str, Any]:
    """The results of each way of reading, as texts: None for a Delta error, which is in `why`."""
    path, results, why = str(table), {}, {}
    looks: dict[str, Callable[[], Any]] = {
        "rows": lambda: read(table),
        "filter": lambda: _texts(DeltaTable(path).to_arrow(filter=_FILTER)),
        "some columns": lambda: _texts(DeltaTable(path).to_arrow(["name"], filter="id < 7")),
        **{f"version {n}": lambda n=n: _texts(DeltaTable(path, version=n).to_arrow()) for n in (0, COMMITS - 3, COMMITS - 1)},
        "at a time": lambda: _texts(DeltaTable(path, timestamp=2**45).to_arrow()),
        "changes": lambda: changes(table),
        "history": lambda: DeltaTable(path).history().select(["version", "operation"]).to_pylist(),
        "report": lambda: DeltaTable(path).report(vacuum=True).html()[:15],
        "detail": lambda: detail_rows(DeltaTable(path).snapshot).select(["id", "numFiles"]).to_pylist(),
    }
    for name, look in looks.items():
        try:
            results[name] = look()
        except DeltaError as error:
            results[name], why[name] = None, str(error)[:300]
    return {**results, "why": why}


def needed(table: Path) -> list[str]:
    """The files of the newest version: of data and of deletion vectors."""
    files = DeltaTable(str(table)).files()
    return [*files["path"].to_pylist(), *vector_files(files).to_pylist()]


def would_go(table: Path) -> list[str]:
    """What VACUUM would delete; empty if it refuses."""
    try:
        return Vacuum.begin(LocalStore(str(table)), _NO_RETENTION, _in_a_month).find()["path"].to_pylist()
    except DeltaError:
        return []


def _in_a_month() -> int:
    return time.time_ns() // 1_000_000 + 30 * 86_400_000


def read(table: Path) -> list[str]:
    """The rows as texts, in order."""
    return _texts(DeltaTable(str(table)).to_arrow())


def _texts(rows: pa.Table) -> list[str]:
    return sorted(repr(row) for row in rows.to_pylist())


def changes(table: Path) -> list[str]:
    """Of the last versions, without times."""
    scan = plan_changes(LocalStore(str(table)), starting_version=COMMITS - 4, ending_version=COMMITS - 1)
    batches = list(read_files(scan.state, scan.scan_files()))
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(repr({name: value for name, value in row.items() if name != "_commit_timestamp"}) for row in rows)


def change(table: Path, rows: list[str] | None, undamaged_rows: list[str]) -> tuple[str | None, str]:
    """Append, delete, compact, sort, purge, clean up, clone, repair and checkpoint, as far as the table allows. Returns the
    operation that broke the table, if any did, and the operations that were done. undamaged_rows: the rows before the damage; a
    repair may restore rows that the damage hid."""
    store = LocalStore(str(table))
    steps: dict[str, tuple[Callable[[], Any], Callable[[list[str], list[str]], bool]]] = {
        "append": (lambda: append(table), lambda old, new: len(new) == len(old) + 1 and _keeps(old, new)),
        "delete": (lambda: delete(table), lambda old, new: set(new) <= set(old) and _keeps(_others(old), new)),
        "compact": (lambda: DeltaTable(str(table)).optimize.compact(), lambda old, new: new == old),
        "order": (lambda: DeltaTable(str(table)).optimize.z_order(["id"]), lambda old, new: new == old),
        "purge": (lambda: DeltaTable(str(table)).reorg.purge(), lambda old, new: new == old),
        "quarantine": (lambda: vacuum(store, replace(_NO_RETENTION, quarantine=True), _in_a_month), lambda old, new: new == old),
        "vacuum": (lambda: vacuum(store, _NO_RETENTION, _in_a_month), lambda old, new: new == old),
        "clone": (lambda: clone(table), lambda old, new: new == old),
        "repair": (lambda: DeltaTable(str(table)).fsck(dry_run=False), lambda old, new: _is_mended(old, new, undamaged_rows)),
        "checkpoint": (lambda: DeltaTable(str(table)).checkpoint(), lambda old, new: new == old),
    }
    log_lines = []
    for name, (step, is_right) in steps.items():
        try:
            step()
        except DeltaError as error:
            log_lines.append(f"{name} refused: {str(error)[:200]}")
            continue
        log_lines.append(name)
        if rows is None:
            continue
        try:
            after = read(table)
        except DeltaError as error:
            return f"{name} broke", f"then {str(error)[:300]}"
        if not is_right(rows, after):
            return f"{name} lost", f"{len(rows)} rows, {len(after)} after: {[row for row in rows if row not in after][:3]}"
        rows = after
    return None, "; ".join(log_lines)


def _keeps(old: list[str], new: list[str]) -> bool:
    return all(new.count(row) >= old.count(row) for row in set(old))


def _is_mended(old: list[str], new: list[str], undamaged_rows: list[str]) -> bool:
    """Whether no row is lost, and each new row was in the undamaged table."""
    return _keeps(old, new) and not Counter(new) - (Counter(old) | Counter(undamaged_rows))


def _others(rows: list[str]) -> list[str]:
    return [row for row in rows if f"'id': {GONE_ID}," not in row]


def append(table: Path) -> None:
    schema = DeltaTable(str(table)).schema()
    row = {field.name: NEW_ID if field.name == "id" else None for field in schema if field.name in ("id", "name", "part")}
    data = pa.table({name: pa.array([value], schema.field(name).type) for name, value in row.items()})
    write_delta(str(table), data, mode="append")


def clone(table: Path) -> None:
    """A deep clone below the table has the table's rows, or does not exist."""
    copy = DeltaTable(str(table)).clone(f"{table}/_copy")
    assert _texts(copy.to_arrow()) == read(table), "the clone has other rows"


def delete(table: Path) -> None:
    """The rows of one id."""
    dml = Dml.begin(LocalStore(str(table)), "DELETE", time_zone="UTC")
    predicate = parse_predicate(f"id = {GONE_ID}", dml.config.schema)
    rows = target_rows(dml, dml.find_candidates(predicate))
    chosen = rows.filter(pa.array([id == GONE_ID for id in rows["id"].to_pylist()], pa.bool_()))
    run(dml, [[changed(chosen, DELETED)]] if chosen.num_rows else [])
