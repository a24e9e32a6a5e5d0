"""Writers that change rows of the same files at once: whoever commits stands as if it had run alone, after those before it.

A table is a list of rows, each with an identity of its own. Every change takes the rows whose id is among some ids, by
deletion vectors: DELETE, UPDATE, or replaceWhere, which puts some new rows there. While it runs others change the table too,
before each of its puts.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable
from delta_py.commit.attempts import RetryPolicy
from delta_py.commit.prepared import IsolationLevel
from delta_py.definition.request import WriteRequest
from delta_py.errors import (
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
)
from delta_py.expressions.parse import parse_predicate
from delta_py.log.commit_reader import read_actions
from delta_py.parquet.file_reader import read_files
from delta_py.protocol.actions import AddFile, RemoveFile
from delta_py.row_changes.dml import Candidates, Dml
from delta_py.row_changes.write import write_delta
from delta_py.scan.planning import ROW_ADDRESS, ScanOptions, plan_listed_files, row_address_column
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import StructType, to_arrow_schema
from delta_py.write.rewrite import remove_rows
from delta_py.write.task_changes import CHANGE, DELETED, FILE, NEW, ROW, ROW_ID, UPDATED, write_changes
from tests.support.runs.sampling import examples

IDS = 24
KINDS = ("REPLACE", "DELETE", "UPDATE")
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.checkpointInterval": "7",
}


@dataclass(frozen=True)
class Change:
    """takes: ids whose rows go, or change. puts: ids, among them, of new rows. rivals: changes made before each of its puts."""

    kind: str
    takes: frozenset[int]
    puts: tuple[int, ...]
    rivals: tuple[Change | None, ...] = ()


def changes(depth: int) -> st.SearchStrategy[Change]:
    takes = st.frozensets(st.integers(0, IDS - 1), min_size=1, max_size=3)
    rivals = st.just(()) if depth == 0 else st.lists(st.none() | changes(depth - 1), max_size=2 * depth).map(tuple)
    return takes.flatmap(
        lambda ids: st.builds(
            Change, st.sampled_from(KINDS), st.just(ids), st.lists(st.sampled_from(sorted(ids)), max_size=1).map(tuple), rivals
        )
    )


@dataclass
class Model:
    """rows: identity -> (id, value), as committed. taken, put: of each version. kinds: of the changes. before: identity -> that
    of the row which was updated to it."""

    rows: dict[int, tuple[int, int]] = field(default_factory=dict)
    taken: dict[int, set[int]] = field(default_factory=dict)
    put: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    before: dict[int, int] = field(default_factory=dict)
    made: int = 0

    def new(self, id: int) -> tuple[int, tuple[int, int]]:
        """A new row: its value is its identity."""
        self.made += 1
        return self.made, (id, self.made)

    def first(self, row: int) -> int:
        """The identity that the row had when it was inserted."""
        while row in self.before:
            row = self.before[row]
        return row

    def apply(self, version: int, kind: str, taken: set[int], put: dict[int, tuple[int, int]]) -> None:
        self.kinds[version] = kind
        self.taken[version], self.put[version] = {self.rows.pop(row)[1] for row in taken}, put
        self.rows.update(put)

    @property
    def version(self) -> int:
        return max(self.put, default=0)


class RacedStore(LocalStore):
    def __init__(self, root: str, before_puts: list[Callable[[], None] | None]) -> None:
        super().__init__(root)
        self.before_puts = before_puts

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        told = path.endswith((".bin", ".json")) and ".compacted." not in path  # not of what follows a commit
        rival = self.before_puts.pop(0) if self.before_puts and told else None
        if rival is not None:
            rival()
        super().put_if_absent(path, data, durably=durably)


@dataclass
class Table:
    root: Path
    model: Model
    isolation: str
    outcomes: Counter[str] = field(default_factory=Counter)

    def run(self, change: Change) -> None:
        """Do it, its rivals in between, and check that it failed if and only if it had to."""
        rivals = [None if rival is None else (lambda rival=rival: self.run(rival)) for rival in change.rivals]
        start = self.model.version
        taken = {row for row, (id, _) in self.model.rows.items() if id in change.takes}
        put = self.puts(change, taken)
        try:
            version = self.write(change, put, rivals)
        except DeltaConcurrentModificationException as error:
            since = range(start + 1, self.model.version + 1)
            twice = any(self.model.taken[version] & taken for version in since)
            added = [[id for id, _ in self.model.put[version].values()] for version in since]
            may_match = any(min(ids) <= id <= max(ids) for ids in added if ids for id in change.takes)
            if isinstance(error, ConcurrentDeleteDeleteException):
                assert twice
            elif isinstance(error, ConcurrentDeleteReadException):
                assert any(self.lost_files(version) for version in since), "of whose rows ours takes none, perhaps"
            else:
                assert may_match and self.isolation == "Serializable"
            self.outcomes["conflict"] += 1
            return
        since = range(start + 1, version)
        assert not any(self.model.taken[earlier] & taken for earlier in since), "both took one row"
        if self.isolation == "Serializable":
            assert taken == {row for row, (id, _) in self.model.rows.items() if id in change.takes}, "not as if alone"
        if version > start:  # else there was nothing to do
            self.model.apply(version, change.kind, taken, put)
        self.outcomes["followed" if version > start + 1 else "alone"] += 1

    def lost_files(self, version: int) -> set[str]:
        """Those that a version removed as a whole."""
        actions = list(read_actions(LocalStore(str(self.root)), version))
        added = {action.path for action in actions if isinstance(action, AddFile)}
        return {action.path for action in actions if isinstance(action, RemoveFile)} - added

    def puts(self, change: Change, taken: set[int]) -> dict[int, tuple[int, int]]:
        if change.kind == "REPLACE":
            return dict(self.model.new(id) for id in change.puts)
        if change.kind == "DELETE":
            return {}
        put = {}
        for row in sorted(taken):
            new, values = self.model.new(self.model.rows[row][0])
            put[new], self.model.before[new] = values, row
        return put

    def write(self, change: Change, put: dict[int, tuple[int, int]], rivals: list[Any]) -> int:
        store = RacedStore(str(self.root), rivals)
        if change.kind != "REPLACE":
            return run_dml(store, change, {self.model.before[row]: row for row in put}, IsolationLevel.parse(self.isolation))
        data = pa.table({"id": pa.array([r[0] for r in put.values()], pa.int64()), "value": pa.array(list(put), pa.int64())})
        return write_delta(
            str(self.root),
            data,
            mode="overwrite",
            replace_where=f"id IN ({', '.join(map(str, sorted(change.takes)))})",
            isolation_level=self.isolation,
            store=store,
        )

    def check(self) -> None:
        if not self.model.version:
            return
        feed = DeltaTable(str(self.root)).changes(starting_version=1).read_all().to_pylist()
        expected = []
        for version, kind in self.model.kinds.items():
            out, into = ("update_preimage", "update_postimage") if kind == "UPDATE" else ("delete", "insert")
            expected += [(version, value, out) for value in self.model.taken[version]]
            expected += [(version, value, into) for _, value in self.model.put[version].values()]
        assert sorted((row["_commit_version"], row["value"], row["_change_type"]) for row in feed) == sorted(expected)
        rows = DeltaTable(str(self.root)).to_arrow().to_pylist()
        assert sorted((row["id"], row["value"]) for row in rows) == sorted(self.model.rows.values())
        self.check_files()
        self.check_row_ids()

    def check_row_ids(self) -> None:
        """No two rows share one, and updated rows keep theirs."""
        first, last = (addresses(Snapshot.load(LocalStore(str(self.root)), version)) for version in (0, None))
        assert len({row["row_id"] for row in last.values()}) == len(last)
        for value, row in last.items():
            origin = self.model.first(value)
            assert origin not in first or first[origin]["row_id"] == row["row_id"]

    def check_files(self) -> None:
        """Counts, bounds and row ids of the files; and that nothing lies about that no version has."""
        named: set[str] = set()
        first_ids: dict[str, tuple[int, int]] = {}
        for version in range(self.model.version + 1):
            files = Snapshot.load(LocalStore(str(self.root)), version).files().to_pylist()
            for file in files:
                ids = file["base_row_id"], file["default_row_commit_version"]
                assert first_ids.setdefault(file["path"], ids) == ids
            named |= {file["path"] for file in files}
        live = sum(
            orjson.loads(f["stats"])["numRecords"] - (f["deletion_vector"] or {"cardinality": 0})["cardinality"] for f in files
        )
        assert live == len(self.model.rows)
        found = {str(path.relative_to(self.root)) for path in self.root.glob("*.parquet")}
        assert found == named


def addresses(snapshot: Snapshot) -> dict[int, dict[str, Any]]:
    """Where each row is, by its value: file_number, row_index, row_id, ..."""
    dml = Dml.on(snapshot, "DELETE", WriteRequest())
    return {row["value"]: row[ROW_ADDRESS] for row in target_rows(dml, dml.find_candidates(None)).to_pylist()}


def target_rows(dml: Dml, candidates: Candidates) -> pa.Table:
    columns = StructType((*dml.snapshot.schema.fields, row_address_column().logical))
    options, files = ScanOptions(row_address=True), candidates.files.to_batches()
    scan = plan_listed_files(dml.snapshot.config, dml.state.store, files, columns, None, options)
    return pa.Table.from_batches(read_files(scan.state, scan.scan_files()), to_arrow_schema(scan.output_schema))


def run_dml(store: RacedStore, change: Change, new_values: Mapping[int, int], isolation: IsolationLevel) -> int:
    """DELETE or UPDATE as the Spark jobs do it. new_values: by the old ones. Returns the version."""
    dml = Dml.on(Snapshot.load(store), change.kind, WriteRequest(isolation_level=isolation.value))
    dml.transaction.only_deleted_rows_matter()
    candidates = dml.find_candidates(parse_predicate(f"id IN ({', '.join(map(str, sorted(change.takes)))})", dml.config.schema))
    rows = target_rows(dml, candidates)
    rows = rows.filter(pc.is_in(rows["id"], pa.array(sorted(change.takes), pa.int64())))
    address = rows.column(ROW_ADDRESS).combine_chunks()
    arrays = {name: address.field(column) for name, column in ((FILE, "file_number"), (ROW, "row_index"), (ROW_ID, "row_id"))}
    arrays[CHANGE] = pa.array([DELETED if change.kind == "DELETE" else UPDATED] * rows.num_rows, pa.int8())
    if change.kind == "UPDATE":
        values = pa.array([new_values[value] for value in rows["value"].to_pylist()], pa.int64())
        arrays[NEW] = pa.StructArray.from_arrays([rows["id"].combine_chunks(), values], ["id", "value"])
    changes = [write_changes(dml.change_state(), [pa.record_batch(arrays)])]
    taken = remove_rows(dml.touched_files(changes), dml.rewrite)
    version, _ = dml.commit({"predicate": []}, changes, taken)
    return version


@contextmanager
def table(isolation: str) -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as root:
        model = Model()
        model.rows = dict(model.new(id) for id in range(IDS))
        data = pa.table({"id": [row[0] for row in model.rows.values()], "value": list(model.rows)})
        write_delta(root, data, configuration=PROPERTIES, max_records_per_file=IDS // 2)
        yield Table(Path(root), model, isolation)


TOTAL: Counter[str] = Counter()


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(changes(2), min_size=1, max_size=2), st.sampled_from(["Serializable", "SnapshotIsolation"]))
def _races(todo: list[Change], isolation: str) -> None:
    with table(isolation) as given_table:
        for change in todo:
            given_table.run(change)
        given_table.check()
        TOTAL.update(given_table.outcomes)


def test_racing_changes_of_rows_stand_as_if_alone_or_conflict(monkeypatch: Any) -> None:
    monkeypatch.setattr(RetryPolicy, "wait_seconds", lambda self, attempt, **_: 0.0)
    TOTAL.clear()
    _races()
    assert min(TOTAL["followed"], TOTAL["conflict"], TOTAL["alone"]) >= 10, TOTAL
