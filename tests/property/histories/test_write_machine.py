"""One table, random writes of every kind and random properties, compared with a plain Python list of rows for each version.

After each write the newest version, and a random one, have the rows of their lists, all rows and those of a predicate. The
version checksum agrees with the log, and the change data feed of the write has the deleted and the inserted rows.
"""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from delta_py import DeltaTable, write_delta
from delta_py.errors import DeltaError, InvariantViolationError, SchemaMismatchError, UnsupportedOperationError
from delta_py.log.history import history
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from tests.support.runs.sampling import examples

Row: TypeAlias = dict[str, Any]
Truth: TypeAlias = bool | None

BASE = {"id": pa.int64(), "part": pa.string(), "day": pa.date32(), "ratio": pa.float64(), "text": pa.string()}
LONG = "z" * 40
VALUES: dict[str, list[Any]] = {
    "id": list(range(8)),
    "part": [None, "", "a", "b c", "ü/=%", "it's"],
    "day": [None, dt.date(2024, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    "ratio": [None, 0.0, 1.5, -2.0, math.nan, math.inf],
    "text": [None, "", "m", LONG, LONG + "y", "\N{OLD PERSIAN SIGN A}" * 33],
}
PARTITIONS: list[list[str]] = [[], [], ["part"], ["day", "part"], ["ratio"]]
SWITCHES: dict[str, list[str]] = {
    "delta.enableDeletionVectors": ["true"],
    "delta.enableChangeDataFeed": ["true"],
    "delta.columnMapping.mode": ["name", "id"],
    "delta.checkpointInterval": ["2", "3"],
    "delta.checkpointPolicy": ["v2"],
    "delta.enableRowTracking": ["true"],
    "delta.enableInCommitTimestamps": ["true"],
    "delta.dataSkippingNumIndexedCols": ["0", "2"],
    "delta.checkpoint.writeStatsAsJson": ["false"],
}
PROPERTIES = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in SWITCHES.items()})


# ---------------------------------------------------------------- predicates, as SQL and as Python


@dataclass(frozen=True)
class Predicate:
    sql: str
    truth: Callable[[Row], Truth] = field(repr=False)

    def is_true(self, row: Row) -> bool:
        return self.truth(row) is True


def literal(value: Any) -> str:
    match value:
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case dt.date():
            return f"date'{value}'"
        case float():
            return f"double('{value}')"
    return str(value)


def order(value: Any) -> Any:
    """Spark's order: NaN equals NaN and is larger than all other numbers; texts by their UTF-8 bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}


def comparison(name: str, operator: str, value: Any) -> Predicate:
    compare = COMPARE[operator]

    def truth(row: Row) -> Truth:
        row_value = row.get(name)
        return None if row_value is None else compare(order(row_value), order(value))

    return Predicate(f"{name} {operator} {literal(value)}", truth)


def is_null(name: str) -> Predicate:
    return Predicate(f"{name} IS NULL", lambda row: row.get(name) is None)


def negation(inner: Predicate) -> Predicate:
    def truth(row: Row) -> Truth:
        inner_truth = inner.truth(row)
        return None if inner_truth is None else not inner_truth

    return Predicate(f"NOT ({inner.sql})", truth)


def both(left: Predicate, right: Predicate) -> Predicate:
    def truth(row: Row) -> Truth:
        truths = left.truth(row), right.truth(row)
        return False if False in truths else None if None in truths else True

    return Predicate(f"({left.sql}) AND ({right.sql})", truth)


def either(left: Predicate, right: Predicate) -> Predicate:
    def truth(row: Row) -> Truth:
        truths = left.truth(row), right.truth(row)
        return True if True in truths else None if None in truths else False

    return Predicate(f"({left.sql}) OR ({right.sql})", truth)


@st.composite
def atoms(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(sorted(VALUES)))
    if draw(st.integers(0, 4)) == 0:
        return is_null(name)
    value = draw(st.sampled_from([value for value in VALUES[name] if value is not None]))
    return comparison(name, draw(st.sampled_from(sorted(COMPARE))), value)


PREDICATES = st.recursive(
    atoms(),
    lambda inner: st.builds(negation, inner) | st.builds(both, inner, inner) | st.builds(either, inner, inner),
    max_leaves=3,
)
ROWS = st.lists(st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()}), max_size=6)


# ---------------------------------------------------------------- the model


@dataclass
class Version:
    types: dict[str, pa.DataType]
    rows: list[Row]
    gone: list[Row]
    came: list[Row]
    partitions: tuple[str, ...]


def bag(rows: Iterable[Mapping[str, Any]], names: Iterable[str]) -> Counter[tuple[Any, ...]]:
    names = list(names)
    return Counter(tuple(comparable(row.get(name)) for name in names) for row in rows)


def comparable(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


class Writes(RuleBasedStateMachine):
    """The table, and its expected content."""

    @initialize(properties=PROPERTIES, partitions=st.sampled_from(PARTITIONS), rows=ROWS)
    def create(self, properties: dict[str, str], partitions: list[str], rows: list[Row]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pydelta-machine-")
        self.path, self.properties = self._folder.name, properties
        self.versions: list[Version] = []
        self.recorded: dict[str, int] = {}
        self.extra = 0
        rows = self.stored(rows, partitions)
        assert write_delta(self.path, self.table(rows, BASE), partition_by=partitions, configuration=properties) == 0
        self.versions.append(Version(dict(BASE), rows, [], rows, tuple(partitions)))

    def teardown(self) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    # ------------------------------------------------------------ helpers

    @property
    def newest(self) -> Version:
        return self.versions[-1]

    @staticmethod
    def stored(rows: list[Row], partitions: Iterable[str]) -> list[Row]:
        """As the table stores them: an empty text in a partition column is null."""
        return [{**row, **{name: None for name in partitions if row[name] == ""}} for row in rows]

    @staticmethod
    def table(rows: list[Row], types: Mapping[str, pa.DataType]) -> pa.Table:
        return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()})

    def filled(self, rows: list[Row]) -> list[Row]:
        """Values for the columns that a schema change added; the text column may have become a number."""
        numbers = self.newest.types["text"] == pa.int64()
        for row in rows:
            row["text"] = (None if row["text"] is None else len(row["text"])) if numbers else row["text"]
            row.update({name: row["id"] * 2 for name in self.newest.types if name.startswith("x")})
        return self.stored(rows, self.newest.partitions)

    def usable(self, predicate: Predicate) -> bool:
        return "text" not in predicate.sql or self.newest.types["text"] == pa.string()

    def write(self, rows: list[Row], types: Mapping[str, pa.DataType] | None = None, **options: Any) -> int:
        return write_delta(self.path, self.table(rows, types or self.newest.types), **options)

    def expect(self, version: int, kept_rows: list[Row], deleted_rows: list[Row], came: list[Row], **changes: Any) -> None:
        types = changes.get("types", self.newest.types)
        partitions = changes.get("partitions", self.newest.partitions)
        if version == len(self.versions) - 1:  # a write that changes nothing
            assert not deleted_rows and not came
            assert (dict(types), tuple(partitions)) == (self.newest.types, self.newest.partitions)
            return
        assert version == len(self.versions)
        self.versions.append(Version(dict(types), kept_rows + came, deleted_rows, came, tuple(partitions)))

    def files(self) -> set[Path]:
        return {path for path in Path(self.path).rglob("*") if path.is_file()}

    # ------------------------------------------------------------ writes

    @rule(rows=ROWS, left_out=st.sampled_from([None, "day", "text"]), limit=st.sampled_from([None, 2]))
    def append(self, rows: list[Row], left_out: str | None, limit: int | None) -> None:
        rows = self.filled(rows)
        types = {name: kind for name, kind in self.newest.types.items() if name != left_out}
        came = [{name: row[name] for name in types} for row in rows]
        if left_out in self.newest.partitions:
            before = self.files()
            with pytest.raises(SchemaMismatchError, match=f"Partition column {left_out} is not among"):
                self.write(came, types, mode="append", max_records_per_file=limit)
            assert self.files() == before
            return
        version = self.write(came, types, mode="append", max_records_per_file=limit)
        self.expect(version, self.newest.rows, [], came)

    @rule(rows=ROWS, app=st.sampled_from(["a", "b"]), number=st.integers(0, 4))
    def append_once(self, rows: list[Row], app: str, number: int) -> None:
        rows = self.filled(rows)
        version = self.write(rows, mode="append", txn_app_id=app, txn_version=number)
        if number <= self.recorded.get(app, -1):
            assert version == len(self.versions) - 1
            return
        self.recorded[app] = number
        self.expect(version, self.newest.rows, [], rows)

    @rule(rows=ROWS)
    def overwrite(self, rows: list[Row]) -> None:
        rows = self.filled(rows)
        self.expect(self.write(rows, mode="overwrite"), [], self.newest.rows, rows)

    @rule(rows=ROWS, predicate=PREDICATES)
    def replace_where(self, rows: list[Row], predicate: Predicate) -> None:
        if not self.usable(predicate):
            return
        rows = [row for row in self.filled(rows) if predicate.is_true(row)]
        before = self.files()
        try:
            version = self.write(rows, mode="overwrite", replace_where=predicate.sql)
        except UnsupportedOperationError:
            assert "delta.enableRowTracking" in self.properties and "delta.enableDeletionVectors" not in self.properties
            assert self.files() == before
            return
        deleted_rows = [row for row in self.newest.rows if predicate.is_true(row)]
        if not rows and not deleted_rows:
            assert version == len(self.versions) - 1
            assert self.files() == before
            return
        self.expect(version, [row for row in self.newest.rows if not predicate.is_true(row)], deleted_rows, rows)

    @rule(rows=ROWS, predicate=PREDICATES)
    def replace_where_with_rows_elsewhere(self, rows: list[Row], predicate: Predicate) -> None:
        rows = self.filled(rows)
        if not self.usable(predicate) or all(predicate.is_true(row) for row in rows):
            return
        before = self.files()
        with pytest.raises(InvariantViolationError):
            self.write(rows, mode="overwrite", replace_where=predicate.sql)
        assert self.files() == before

    @rule(rows=ROWS)
    def overwrite_partitions(self, rows: list[Row]) -> None:
        rows = self.filled(rows)
        version = self.write(rows, mode="overwrite", partition_overwrite_mode="dynamic")
        names = self.newest.partitions
        touched = bag(rows, names)
        if not names:
            self.expect(version, [], self.newest.rows, rows)
            return
        deleted_rows = [row for row in self.newest.rows if next(iter(bag([row], names))) in touched]
        self.expect(
            version, [row for row in self.newest.rows if next(iter(bag([row], names))) not in touched], deleted_rows, rows
        )

    @rule(rows=ROWS, overwrite=st.booleans(), new=st.booleans())
    def merge_schema(self, rows: list[Row], overwrite: bool, new: bool) -> None:
        rows, types = self.filled(rows), dict(self.newest.types)
        if new:
            self.extra += 1
            types[f"x{self.extra}"] = pa.int32()
            rows = [{**row, f"x{self.extra}": row["id"]} for row in rows]
        version = self.write(rows, types, mode="overwrite" if overwrite else "append", merge_schema=True)
        kept_rows, deleted_rows = ([], self.newest.rows) if overwrite else (self.newest.rows, [])
        self.expect(version, kept_rows, deleted_rows, rows, types=types)

    @rule(rows=ROWS, partitions=st.sampled_from(PARTITIONS), number=st.booleans())
    def overwrite_schema(self, rows: list[Row], partitions: list[str], number: bool) -> None:
        types = {**BASE, "text": pa.int64() if number else pa.string()}
        rows = [{**row, "text": row["id"] if number else row["text"]} for row in self.stored(rows, partitions)]
        version = self.write(rows, types, mode="overwrite", overwrite_schema=True, partition_by=partitions)
        self.expect(version, [], self.newest.rows, rows, types=types, partitions=partitions)

    @precondition(lambda self: len(self.versions) > 1)
    @rule(suffix=st.sampled_from(["_last_checkpoint", "*.crc", "*.compacted.json", "*.checkpoint*parquet"]))
    def lose_what_may_be_lost(self, suffix: str) -> None:
        """All commits exist, so no other file of the log is needed."""
        for file in (Path(self.path) / "_delta_log").glob(suffix):
            file.unlink()

    # ------------------------------------------------------------ reads

    @invariant()
    def newest_version_is_right(self) -> None:
        if not hasattr(self, "versions"):
            return
        snapshot = Snapshot.load(LocalStore(self.path))
        assert snapshot.version == len(self.versions) - 1
        snapshot.check_integrity()
        self.check(snapshot.version, None)
        self.check_changes(snapshot.version)
        self.check_log(snapshot)

    @rule(number=st.integers(0, 100), predicate=PREDICATES)
    def read_old_version(self, number: int, predicate: Predicate) -> None:
        version = number % len(self.versions)
        Snapshot.load(LocalStore(self.path), version=version).check_integrity()
        self.check(version, None)
        self.check(version, predicate)

    @rule(predicate=PREDICATES)
    def read_with_predicate(self, predicate: Predicate) -> None:
        self.check(len(self.versions) - 1, predicate)

    def check(self, version: int, predicate: Predicate | None) -> None:
        expected = self.versions[version]
        if predicate is not None and "text" in predicate.sql and expected.types["text"] != pa.string():
            return
        actual = DeltaTable(self.path, version=version).to_arrow(filter=None if predicate is None else predicate.sql)
        assert actual.schema.names == list(expected.types) and actual.schema.types == list(expected.types.values())
        rows = [row for row in expected.rows if predicate is None or predicate.is_true(row)]
        assert bag(actual.to_pylist(), expected.types) == bag(rows, expected.types), predicate

    def check_changes(self, version: int) -> None:
        if "delta.enableChangeDataFeed" not in self.properties:
            return
        expected = self.versions[version]
        before = self.versions[max(version - 1, 0)]
        try:
            table = DeltaTable(self.path, version=version)
            changes = table.changes(starting_version=version, ending_version=version).read_all().to_pylist()
        except DeltaError:  # rows of the earlier schema cannot be shown in this one
            assert before.types.items() - expected.types.items() or before.partitions != expected.partitions
            return
        deleted_rows = [row for row in changes if row["_change_type"] == "delete"]
        came = [row for row in changes if row["_change_type"] == "insert"]
        assert len(deleted_rows) + len(came) == len(changes) and {row["_commit_version"] for row in changes} <= {version}
        assert bag(came, expected.types) == bag(expected.came, expected.types)
        names = [name for name, kind in expected.types.items() if before.types.get(name) == kind]
        assert bag(deleted_rows, names) == bag(expected.gone, names)

    def check_log(self, snapshot: Snapshot) -> None:
        files = snapshot.files().to_pylist()
        for file in files:
            assert (Path(self.path) / file["path"]).stat().st_size == file["size"]
        if "delta.enableRowTracking" in self.properties:
            counts = [orjson.loads(file["stats"])["numRecords"] for file in files]
            ids = [set(range(file["base_row_id"], file["base_row_id"] + n)) for file, n in zip(files, counts, strict=True)]
            assert len(set().union(*ids)) == sum(counts), "two rows have one row id"
        if "delta.enableInCommitTimestamps" in self.properties:
            times = history(snapshot.store)["timestamp"].to_pylist()
            assert times == sorted(set(times), reverse=True)


TestWrites = Writes.TestCase
TestWrites.settings = settings(
    max_examples=examples(16, 96),
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
