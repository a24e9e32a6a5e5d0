"""Every public method of delta_py on storage that fails: it raises a DeltaError that names the file, and no table is damaged.

Reflection lists the methods, so a new one fails the first test until it has a case here. In each case the calls of the store fail
in turn, with the errors of a disk that is full, read-only, owned by somebody else or broken.
"""

from __future__ import annotations

import dataclasses
import errno
import inspect
import itertools
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delta_py.transactions
from delta_py import DeltaTable, write_delta
from delta_py.alter.column_changes import ColumnChange
from delta_py.alter.table_alterer import TableAlterer
from delta_py.checkpoint.leases import HeldLease
from delta_py.definition.create import create_table, define_table
from delta_py.errors import CommitOutcomeUnknownError, DataFileError, DeltaError, StorageError, TableNotFoundError
from delta_py.index_commands.index import TableIndexes
from delta_py.index_commands.index_build import BuildLimits
from delta_py.object_stores import open_store
from delta_py.optimize.optimize import TableOptimizer
from delta_py.optimize.reorg import TableReorg
from delta_py.repair.rebuild_ledger import rebuild_ledger
from delta_py.report.report import Report
from delta_py.row_changes.merge import TableMerger
from delta_py.scan.planning import Scan
from delta_py.storage.local import LocalStore
from delta_py.transactions import DeltaTransaction, transact
from delta_py.types.schema import LONG, StructField, StructType
from tests.support.runs.sampling import sampled
from tests.support.stores.coordination import create_coordinated, ledger_url
from tests.support.stores.faulty_store import Fault, FaultyStore

pytestmark = pytest.mark.usefixtures("no_waits", "publication_at_once")

CODES = {name: getattr(errno, name) for name in ("ENOSPC", "EROFS", "EACCES", "EIO")}
CLASSES = (
    DeltaTable,
    TableAlterer,
    TableOptimizer,
    TableIndexes,
    TableReorg,
    TableMerger,
    DeltaTransaction,
    HeldLease,
    Scan,
    Report,
)
SPECIAL = ("__init__", "__enter__", "__exit__", "__arrow_c_stream__")
DAYS = 86_400
ROWS = pa.table({"id": [20, 21], "part": [0, 1], "s": ["x", "y"]})
SOURCE = pa.table({"id": [2, 30], "part": [0, 0], "s": ["merged", "new"]})


# ---------------------------------------------------------------- the tables


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One table of each kind that some method needs."""
    root = tmp_path_factory.mktemp("base")
    table, properties = (
        str(root / "t"),
        {
            "delta.enableDeletionVectors": "true",
            "delta.enableChangeDataFeed": "true",
            "delta.columnMapping.mode": "name",
            "team": "a",
        },
    )
    for number in range(3):
        ids = range(4 * number, 4 * number + 4)
        rows = pa.table({"id": ids, "part": [n % 2 for n in ids], "s": [f"row {n}" for n in ids]})
        write_delta(table, rows, mode="append", partition_by=["part"], configuration=properties if number == 0 else None)
    plain = DeltaTable(table)
    plain.alter.add_constraint({"positive": "id >= 0"})
    plain.index.create("id", "by_id")
    plain.delete("id = 1")
    write_delta(table, ROWS.slice(0, 1), mode="append")
    write_delta(str(root / "clustered"), ROWS, cluster_by=["id"])
    write_delta(str(root / "clustered"), ROWS, mode="append")
    rules = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}
    create_table(LocalStore(str(root / "numbered")), define_table(StructType((StructField("id", LONG, True, rules),))))
    write_delta(str(root / "numbered"), pa.table({"id": range(12)}), mode="append")
    write_delta(str(root / "unsummed"), ROWS)
    (checksum,) = (root / "unsummed" / "_delta_log").glob("*.crc")
    checksum.unlink()
    for name in ("aside", "quarantined"):
        write_delta(str(root / name), ROWS)
        write_delta(str(root / name), ROWS, mode="overwrite")
    DeltaTable(str(root / "quarantined")).vacuum(0, dry_run=False, enforce_retention_duration=False, quarantine=True)
    write_delta(str(root / "old"), ROWS, configuration={"delta.checkpointInterval": "2"})
    for _ in range(5):
        write_delta(str(root / "old"), ROWS, mode="append")
    for file in (root / "old" / "_delta_log").iterdir():
        os.utime(file, (time.time() - 60 * DAYS,) * 2)
    for part in (0, 1):
        (root / "files" / f"part={part}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [part]}), root / "files" / f"part={part}" / "f.parquet")
    return root


@dataclass
class World:
    """root: the directory of the tables of one trial. Their stores count calls together, and share one fault."""

    root: Path
    fault: Fault | None = None
    calls: list[str] = field(default_factory=list)
    stores: list[FaultyStore] = field(default_factory=list)

    def open(self, path: str) -> FaultyStore:
        self.stores.append(FaultyStore(LocalStore(path), self.fault, self.calls))
        return self.stores[-1]

    def arm(self, fault: Fault | None) -> None:
        self.calls.clear()
        self.fault = fault
        for store in self.stores:
            store.fault = fault

    def path(self, name: str) -> str:
        return str(self.root / name)

    def table(self, name: str = "t") -> DeltaTable:
        return DeltaTable(self.path(name))

    def transaction(self, isolation: str = "snapshot") -> DeltaTransaction:
        return DeltaTransaction(ledger_url(self.root), isolation=isolation).__enter__()

    def changed(self) -> DeltaTransaction:
        """A transaction that has changed both tables."""
        transaction = self.transaction()
        transaction.append(self.path("accounts"), IDS)
        transaction.delete(self.path("entries"), "id = 1")
        return transaction

    def state(self, name: str) -> list[Any] | None:
        """The rows, always in the same order; None if there is no table. Raises if a table is damaged."""
        options = {"coordinator": ledger_url(self.root)} if name in COORDINATED else {}
        try:
            table = DeltaTable(self.path(name), storage_options=options)
        except TableNotFoundError:
            return None
        table.snapshot.check_integrity()
        assert not [fault for fault in table.fsck().to_pylist() if fault["data_file"] or not fault["can_repair"]]
        return sorted(map(str, table.to_arrow().to_pylist()))


@dataclass(frozen=True)
class Case:
    """run: the call that runs while storage fails; it gets the result of `given`, which runs before, and the world. tables: those
    that it needs or makes."""

    run: Callable[[Any, World], object]
    given: Callable[[World], Any] = lambda world: None
    tables: tuple[str, ...] = ("t",)


COORDINATED = ("accounts", "entries")


def on_table(run: Callable[[DeltaTable], object], name: str = "t", *more: str) -> Case:
    return Case(lambda table, world: run(table), lambda world: world.table(name), (name, *more))


def on_alterer(run: Callable[[TableAlterer], object], name: str = "t") -> Case:
    return Case(lambda table, world: run(table.alter), lambda world: world.table(name), (name,))


def on_optimizer(run: Callable[[TableOptimizer], object], name: str = "t") -> Case:
    return Case(lambda table, world: run(table.optimize), lambda world: world.table(name), (name,))


def on_merger(run: Callable[[TableMerger], object]) -> Case:
    return Case(lambda merger, world: run(merger), lambda world: world.table().merge(SOURCE, "source.id = target.id"))


def on_scan(run: Callable[[Scan], object]) -> Case:
    return Case(lambda scan, world: run(scan), lambda world: world.table().scan())


def in_transaction(run: Callable[[DeltaTransaction, World], object]) -> Case:
    def finished(transaction: DeltaTransaction, world: World) -> None:
        run(transaction, world)
        transaction.commit()

    return Case(finished, lambda world: world.transaction("serializable"), COORDINATED)


def with_lease(run: Callable[[HeldLease], object]) -> Case:
    def held(table: DeltaTable, world: World) -> None:
        lease = table.lease()
        try:
            run(lease)
        finally:
            lease.release()

    return Case(held, lambda world: world.table())


def streamed(table: DeltaTable, world: World) -> None:
    """Arrow's C stream does not carry a Python exception, only its text."""
    try:
        pa.RecordBatchReader.from_stream(table).read_all()
    except (pa.ArrowException, OSError) as error:
        raise DataFileError(str(error)) from error


def entered(transaction: DeltaTransaction, world: World) -> None:
    with transaction:
        transaction.append(world.path("accounts"), IDS)


IDS = pa.table({"id": [7, 8]})
CASES: dict[str, Case] = {
    "DeltaTable.__init__": Case(
        lambda _, world: (world.table(), DeltaTable(world.path("t") + "@v1"), DeltaTable(world.path("t"), version=2))
    ),
    "DeltaTable.convert": Case(
        lambda _, world: DeltaTable.convert(world.path("files"), pa.schema({"part": pa.int32()})), tables=("files",)
    ),
    "DeltaTable.version": on_table(lambda table: table.version),
    "DeltaTable.snapshot": on_table(lambda table: table.snapshot),
    "DeltaTable.metadata": on_table(lambda table: table.metadata),
    "DeltaTable.protocol": on_table(lambda table: table.protocol),
    "DeltaTable.struct_type": on_table(lambda table: table.struct_type),
    "DeltaTable.schema": on_table(DeltaTable.schema),
    "DeltaTable.files": on_table(DeltaTable.files),
    "DeltaTable.history": on_table(DeltaTable.history),
    "DeltaTable.detail": on_table(DeltaTable.detail),
    "DeltaTable.explain_files": on_table(lambda table: table.explain_files("id = 5")),
    "DeltaTable.scan": on_table(lambda table: table.scan(["id"], "id = 5")),
    "DeltaTable.to_batches": on_table(lambda table: table.to_batches().read_all()),
    "DeltaTable.to_arrow": on_table(lambda table: table.to_arrow(filter="id > 2")),
    "DeltaTable.to_pandas": on_table(DeltaTable.to_pandas),
    "DeltaTable.__arrow_c_stream__": Case(streamed, lambda world: world.table()),
    "DeltaTable.changes": on_table(lambda table: table.changes(starting_version=0).read_all()),
    "DeltaTable.delete": on_table(lambda table: table.delete("id = 2")),
    "DeltaTable.update": on_table(lambda table: table.update({"s": "'new'"}, predicate="id = 2")),
    "DeltaTable.merge": on_table(lambda table: table.merge(SOURCE, "source.id = target.id")),
    "DeltaTable.alter": on_table(lambda table: table.alter),
    "DeltaTable.optimize": on_table(lambda table: table.optimize),
    "DeltaTable.index": on_table(lambda table: table.index),
    "DeltaTable.reorg": on_table(lambda table: table.reorg),
    "DeltaTable.cluster_by": on_table(lambda table: table.cluster_by(["part"]), "clustered"),
    "DeltaTable.layout": on_table(DeltaTable.layout),
    "DeltaTable.vacuum": on_table(lambda table: table.vacuum(0, dry_run=False, enforce_retention_duration=False), "aside"),
    "DeltaTable.restore_quarantined": on_table(DeltaTable.restore_quarantined, "quarantined"),
    "DeltaTable.lease": with_lease(lambda lease: None),
    "DeltaTable.generate": on_table(DeltaTable.generate, "clustered"),
    "DeltaTable.clone": Case(
        lambda table, world: (table.clone(world.path("deep")), table.clone(world.path("shallow"), shallow=True)),
        lambda world: world.table(),
        ("t", "deep", "shallow"),
    ),
    "DeltaTable.fsck": on_table(lambda table: table.fsck(dry_run=False)),
    "DeltaTable.report": on_table(lambda table: table.report(vacuum=True)),
    "DeltaTable.metrics_text": on_table(DeltaTable.metrics_text),
    "DeltaTable.checkpoint": on_table(DeltaTable.checkpoint),
    "DeltaTable.write_checksum": on_table(DeltaTable.write_checksum, "unsummed"),
    "DeltaTable.compact_log": on_table(DeltaTable.compact_log),
    "DeltaTable.clean_log": on_table(DeltaTable.clean_log, "old"),
    "TableAlterer.add_columns": on_alterer(lambda alter: alter.add_columns(pa.schema({"more": pa.int64()}))),
    "TableAlterer.rename_column": on_alterer(lambda alter: alter.rename_column("s", "text")),
    "TableAlterer.drop_columns": on_alterer(lambda alter: alter.drop_columns(["s"])),
    "TableAlterer.change_column": on_alterer(lambda alter: alter.change_column("s", comment="a text")),
    "TableAlterer.change_columns": on_alterer(lambda alter: alter.change_columns([ColumnChange("s", comment="a text")])),
    "TableAlterer.drop_column_not_null": on_alterer(lambda alter: alter.drop_column_not_null("s")),
    "TableAlterer.replace_columns": on_alterer(
        lambda alter: alter.replace_columns(pa.schema({"id": pa.int64(), "part": pa.int64()}))
    ),
    "TableAlterer.sync_identity": on_alterer(lambda alter: alter.sync_identity("id"), "numbered"),
    "TableAlterer.add_constraint": on_alterer(lambda alter: alter.add_constraint({"small": "id < 1000"})),
    "TableAlterer.drop_constraint": on_alterer(lambda alter: alter.drop_constraint("positive")),
    "TableAlterer.set_table_properties": on_alterer(lambda alter: alter.set_table_properties({"team": "b"})),
    "TableAlterer.unset_table_properties": on_alterer(lambda alter: alter.unset_table_properties(["team"])),
    "TableAlterer.add_feature": on_alterer(lambda alter: alter.add_feature("timestampNtz")),
    "TableAlterer.drop_feature": on_alterer(lambda alter: alter.drop_feature("deletionVectors")),
    "TableOptimizer.compact": on_optimizer(TableOptimizer.compact),
    "TableOptimizer.z_order": on_optimizer(lambda optimizer: optimizer.z_order(["id"])),
    "TableOptimizer.cluster": on_optimizer(TableOptimizer.cluster, "clustered"),
    "TableIndexes.__init__": on_table(lambda table: TableIndexes(table.snapshot.store)),
    "TableIndexes.create": on_table(lambda table: table.index.create("s", "by_s")),
    "TableIndexes.drop": on_table(lambda table: table.index.drop("by_id")),
    "TableIndexes.refresh": on_table(lambda table: table.index.refresh()),
    "TableIndexes.list": on_table(lambda table: table.index.list()),
    "TableIndexes.cover": on_table(lambda table: table.index.cover("by_id", BuildLimits())),
    "TableReorg.purge": on_table(lambda table: table.reorg.purge()),
    "TableMerger.__init__": on_merger(lambda merger: merger.when_matched_delete()),
    "TableMerger.when_matched_update": on_merger(lambda merger: merger.when_matched_update({"s": "source.s"})),
    "TableMerger.when_matched_update_all": on_merger(lambda merger: merger.when_matched_update_all()),
    "TableMerger.when_matched_delete": on_merger(lambda merger: merger.when_matched_delete()),
    "TableMerger.when_not_matched_insert": on_merger(lambda merger: merger.when_not_matched_insert({"id": "source.id"})),
    "TableMerger.when_not_matched_insert_all": on_merger(lambda merger: merger.when_not_matched_insert_all()),
    "TableMerger.when_not_matched_by_source_update": on_merger(
        lambda merger: merger.when_not_matched_by_source_update({"s": "'alone'"})
    ),
    "TableMerger.when_not_matched_by_source_delete": on_merger(lambda merger: merger.when_not_matched_by_source_delete()),
    "TableMerger.execute": on_merger(lambda merger: merger.when_matched_update_all().when_not_matched_insert_all().execute()),
    "DeltaTransaction.__init__": Case(lambda _, world: DeltaTransaction(ledger_url(world.root)), tables=COORDINATED),
    "DeltaTransaction.__enter__": Case(entered, lambda world: DeltaTransaction(ledger_url(world.root)), COORDINATED),
    "DeltaTransaction.__exit__": Case(lambda tx, world: tx.__exit__(None, None, None), World.changed, COORDINATED),
    "DeltaTransaction.resume": Case(
        lambda tx, world: DeltaTransaction(ledger_url(world.root), isolation="snapshot").resume(tx.identity),
        World.changed,
        COORDINATED,
    ),
    "DeltaTransaction.identity": in_transaction(lambda tx, world: tx.identity),
    "DeltaTransaction.commit": Case(lambda tx, world: tx.commit(), World.changed, COORDINATED),
    "DeltaTransaction.abort": Case(lambda tx, world: tx.abort(), World.changed, COORDINATED),
    "DeltaTransaction.storage_options": in_transaction(lambda tx, world: tx.storage_options(world.path("entries"))),
    "DeltaTransaction.table": in_transaction(lambda tx, world: tx.table(world.path("entries")).to_arrow()),
    "DeltaTransaction.read": in_transaction(lambda tx, world: tx.read(world.path("entries"), filter="id = 1")),
    "DeltaTransaction.note_read": in_transaction(lambda tx, world: tx.note_read(tx.table(world.path("entries")), "id = 1")),
    "DeltaTransaction.append": in_transaction(lambda tx, world: tx.append(world.path("entries"), IDS)),
    "DeltaTransaction.overwrite": in_transaction(lambda tx, world: tx.overwrite(world.path("entries"), IDS)),
    "DeltaTransaction.delete": in_transaction(lambda tx, world: tx.delete(world.path("entries"), "id = 1")),
    "DeltaTransaction.update": in_transaction(lambda tx, world: tx.update(world.path("entries"), {"id": "id + 1"})),
    "DeltaTransaction.merge": in_transaction(
        lambda tx, world: tx.merge(world.path("entries"), IDS, "source.id = target.id").when_not_matched_insert_all().execute()
    ),
    "HeldLease.__init__": with_lease(lambda lease: None),
    "HeldLease.__enter__": with_lease(lambda lease: lease.__enter__()),
    "HeldLease.__exit__": with_lease(lambda lease: lease.__exit__(None, None, None)),
    "HeldLease.move": with_lease(lambda lease: lease.move(1)),
    "HeldLease.release": with_lease(lambda lease: lease.release()),
    "Scan.output_schema": on_scan(lambda scan: scan.output_schema),
    "Scan.paths": on_scan(lambda scan: scan.paths()),
    "Scan.scan_files": on_scan(lambda scan: list(scan.scan_files())),
    "Scan.pack": on_scan(lambda scan: scan.pack(max_group_bytes=1000, open_cost_bytes=10, target_groups=2)),
    "Scan.cut_files": on_scan(lambda scan: scan.cut_files(1000, 10, 2)),
    "Report.html": on_table(lambda table: table.report().html()),
    "Report.write": Case(lambda table, world: table.report().write(world.root / "page.html"), lambda world: world.table()),
    "Report.to_json": on_table(lambda table: table.report().to_json()),
    "write_delta": Case(
        lambda _, world: (
            write_delta(world.path("new"), ROWS, mode="append"),
            write_delta(world.path("new"), ROWS, mode="overwrite"),
        ),
        tables=("new",),
    ),
    "transact": Case(
        lambda _, world: transact(
            ledger_url(world.root),
            [
                delta_py.transactions.check(world.path("accounts"), "id = 1"),
                delta_py.transactions.append(world.path("accounts"), IDS),
                delta_py.transactions.update(world.path("accounts"), {"id": "id + 1"}, "id = 7"),
                delta_py.transactions.delete(world.path("entries"), "id = 1"),
            ],
        ),
        tables=COORDINATED,
    ),
    "rebuild_ledger": Case(
        lambda _, world: rebuild_ledger(f"sqlite://{world.root}/another.db", [world.path("accounts"), world.path("entries")]),
        tables=COORDINATED,
    ),
}


def public_members(cls: type) -> Iterator[str]:
    for name, member in vars(cls).items():
        is_called = inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)
        if is_called and (name in SPECIAL or not name.startswith("_")):
            yield f"{cls.__name__}.{name}"


def test_every_public_method_has_a_case() -> None:
    members = {name for cls in CLASSES for name in public_members(cls)}
    made_by_dataclass = {f"{cls.__name__}.__init__" for cls in CLASSES if dataclasses.is_dataclass(cls)}
    assert members - made_by_dataclass <= CASES.keys(), "give it a case"
    assert CASES.keys() - members == {"write_delta", "transact", "rebuild_ledger"}, "there is no such method any more"


def test_every_object_that_a_public_method_gives_is_looked_at() -> None:
    known_names = {cls.__name__ for cls in CLASSES}
    harmless = {"Snapshot", "Metadata", "Protocol", "StructType"}  # values, and the state behind the methods
    for cls in (DeltaTable, DeltaTransaction):
        for name in public_members(cls):
            member = inspect.getattr_static(cls, name.partition(".")[2])
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            for class_name in re.findall(r"[A-Z]\w+", str(inspect.signature(function).return_annotation)):
                assert (
                    class_name in known_names | harmless
                    or hasattr(pa, class_name)
                    or class_name in ("Any", "Self", "None", "DataFrame")
                ), name


# ---------------------------------------------------------------- trials


def copy_tables(case: Case, base: Path, world: World) -> None:
    world.root.mkdir()
    for name in case.tables:
        if name in COORDINATED:
            create_coordinated(world.root / name, ledger_url(world.root), {"id": [1, 2, 3]})
        elif (base / name).exists():
            shutil.copytree(base / name, world.root / name)


@pytest.fixture
def new_world(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Case], World]:
    current: list[World] = []
    monkeypatch.setattr(open_store, "_local_store", lambda path: current[-1].open(path))

    def make(case: Case) -> World:
        world = World(tmp_path / str(len(current)))
        current.append(world)
        copy_tables(case, base, world)
        return world

    return make


def trials(calls: list[str]) -> Iterator[Fault]:
    """A sample: the first call of each kind with each error, and all calls with one error each. Temporary and lasting faults take
    turns."""
    kinds: dict[str, int] = {}
    for number, call in enumerate(calls):
        kinds.setdefault(call.split()[0], number)
    for number, code in sampled(itertools.product(kinds.values(), CODES.values()), 4):
        yield Fault(number, lasting=True, code=code)
    for number in sampled(range(len(calls)), 8):
        yield Fault(number, lasting=number % 2 == 0, code=[*CODES.values()][number // 2 % len(CODES)])


@pytest.mark.parametrize("name", CASES)
def test_storage_that_fails_is_a_delta_error_and_harms_nothing(name: str, new_world: Callable[[Case], World]) -> None:
    case = CASES[name]
    world = new_world(case)
    before = [world.state(table) for table in case.tables]
    prepared = case.given(world)
    world.arm(None)
    case.run(prepared, world)
    calls = list(world.calls)
    after = [world.state(table) for table in case.tables]
    outcomes: Counter[str] = Counter()
    for fault in trials(calls):
        world = new_world(case)
        prepared = case.given(world)
        world.arm(fault)
        outcome = "done"
        try:
            case.run(prepared, world)
        except DeltaError as error:
            outcome = type(error).__name__
            assert isinstance(error, StorageError | DataFileError | CommitOutcomeUnknownError), (fault, error)
            assert str(world.root) in str(error) or isinstance(error, DataFileError), (fault, error)
        world.arm(None)
        states = [world.state(table) for table in case.tables]
        assert all(state in both for state, *both in zip(states, before, after, strict=True)), (fault, calls[fault.call], outcome)
        if case.tables == COORDINATED:
            assert states in (before, after), "both tables, or none"
        outcomes[outcome] += 1
    assert not calls or outcomes, "no fault was felt"


# ---------------------------------------------------------------- file systems that refuse


@pytest.fixture
def disk() -> Iterator[Path]:
    """A separate small file system that everybody may read."""
    with tempfile.TemporaryDirectory(prefix="pydelta-disk-") as name:
        os.chmod(name, 0o755)
        command = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "pydelta-test", name]
        mounted = shutil.which("mount") and subprocess.run(command, capture_output=True, text=True)
        if not mounted or mounted.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip() if mounted else 'there is no mount'}")
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "-l", name], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))
    yield
    filler.unlink()


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


@contextmanager
def not_ours(disk: Path) -> Iterator[None]:
    """Root owns every file in effect, so this uses another user."""
    before = os.geteuid()
    os.seteuid(65_534)
    yield
    os.seteuid(before)


@pytest.mark.parametrize("refused", [full, read_only, not_ours])
def test_file_system_that_refuses_is_a_delta_error(
    refused: Callable[[Path], AbstractContextManager[None]], disk: Path, base: Path
) -> None:
    """With real errors of the system: reads continue, and writes report what they could not write."""
    outcomes: dict[str, str] = {}
    for name, case in CASES.items():
        if refused is read_only and case.tables == COORDINATED:
            continue  # the ledger has its file open for writing, so the file system cannot become read-only
        world = World(disk / name)
        copy_tables(case, base, world)
        before = [world.state(table) for table in case.tables]
        prepared = case.given(world)
        with refused(disk):
            outcome = "done"
            try:
                case.run(prepared, world)
            except DeltaError as error:
                outcome = type(error).__name__
                assert str(disk) in str(error), (name, error)
            except OSError as error:
                assert name == "Report.write", f"{name}: {error!r}"  # a file of the user, not part of a table
            outcomes[name] = outcome
        states = [world.state(table) for table in case.tables]
        assert outcome == "done" or states == before, name
        shutil.rmtree(world.root)
    for name in ("DeltaTable.checkpoint", "DeltaTable.delete", "DeltaTable.compact_log", "TableOptimizer.compact", "write_delta"):
        assert outcomes[name] == "StorageError", outcomes
    for name in ("DeltaTable.to_arrow", "DeltaTable.changes", "DeltaTable.history", "DeltaTable.report"):
        assert outcomes[name] == "done", outcomes
