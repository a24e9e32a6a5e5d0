"""Secondary indexes: which files a lookup opens, refusals, and segments that cannot be used."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.commit.transaction import Transaction
from delta_py.copies.restore import restore
from delta_py.errors import (
    DeltaError,
    InvalidOptionError,
    SchemaMismatchError,
    UnsupportedOperationError,
    UnsupportedTableFeatureError,
)
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.parse import parse_predicate
from delta_py.expressions.tree import Column, Comparison, Literal
from delta_py.index import lookup, segments
from delta_py.index_commands import index_upkeep
from delta_py.index_commands.index import TableIndexes
from delta_py.index_commands.index_build import BuildLimits
from delta_py.protocol.actions import DomainMetadata
from delta_py.row_changes.dml import Dml
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import TIMESTAMP
from delta_py.vacuum.vacuum import VacuumRequest, vacuum
from tests.unit.optimize.test_optimize import compacted, delete

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """As in a new process."""
    nothing_remembered()
    yield


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Four files; by their bounds each may hold any even number up to 1,000."""
    path = str(tmp_path / "table")
    for number in range(4):
        append(path, number)
    return path


def append(path: str, number: int) -> None:
    ids = [0, *range(2 + 2 * number, 990, 8), 1000]
    rows = {"id": ids, "s": [f"key {i}" for i in ids], "n": [{"x": i} if i % 3 else None for i in ids]}
    write_delta(path, pa.table(rows), mode="append", configuration=VECTORS if number == 0 else None)


def opened(path: str, filter: str) -> int:
    """The number of files that a lookup opens. Its rows equal those of a lookup without an index."""
    table = DeltaTable(path)
    scan = table.scan(filter=filter)
    indexed_rows = table.to_arrow(filter=filter).sort_by("id")
    predicate = parse_predicate(filter, table.struct_type)
    everything = table.to_arrow()
    expected_rows = pa.Table.from_batches(
        [batch.filter(evaluate(predicate, batch)) for batch in everything.to_batches()], everything.schema
    )
    assert indexed_rows == expected_rows.sort_by("id")
    return scan.report.files_kept


def names(path: str) -> dict[str, Any]:
    return {row["name"]: row for row in DeltaTable(path).index.list().to_pylist()}


@pytest.mark.parametrize(
    ("filter", "files"),
    [
        ("id = 10", 1),
        ("10 = id", 1),
        ("id <=> 10", 1),
        ("id = 11", 0),
        ("id IN (10, 12, 11)", 2),
        ("id IN (10, NULL)", 1),
        ("id = 10 AND s LIKE 'key%'", 1),
        ("id = 10 OR s = 'key 12'", 4),
        ("NOT id = 10", 4),
        ("id > 10", 4),
        ("id = 10.0", 1),
        ("id + 0 = 10", 4),
        ("s = 'key 12'", 1),
        ("s = 'key'", 0),
        ("upper(s) = 'KEY 12'", 4),
        ("n.x = 10", 1),
        ("n.x = 11", 0),
        ("n.x IS NULL", 4),
    ],
)
def test_lookup_opens_the_files_that_hold_the_value(path: str, filter: str, files: int) -> None:
    for column in ("id", "s", "n.x"):
        DeltaTable(path).index.create(column)
    if files < 4:
        assert opened(path, filter) <= files
    else:
        assert opened(path, filter) == 4


def test_files_that_came_later_are_read_until_refresh(path: str) -> None:
    DeltaTable(path).index.create("id", "by_id")
    append(path, 0)
    assert opened(path, "id = 11") == 1 and names(path)["by_id"]["uncovered"] == 1
    DeltaTable(path).index.refresh()
    assert opened(path, "id = 11") == 0
    assert {key: names(path)["by_id"][key] for key in ("files", "uncovered", "segments")} == {
        "files": 5,
        "uncovered": 0,
        "segments": 1,
    }
    version = DeltaTable(path).version
    assert DeltaTable(path).index.refresh("BY_ID") == version, "nothing was to be done"


def test_many_new_files_refresh_the_index_automatically(path: str) -> None:
    DeltaTable(path).index.create("id")
    for number in range(40):
        append(path, number % 4)
    assert names(path)["id"]["uncovered"] < 20
    assert opened(path, "id = 11") < 20
    compacted(path)
    DeltaTable(path).index.refresh()
    assert names(path)["id"]["files"] == 1
    log = DeltaTable(path).history().to_pylist()
    assert "REFRESH INDEX" in {row["operation"] for row in log}
    DeltaTable(path).snapshot.check_integrity()


def test_rows_that_come_back_by_restore_are_found(path: str) -> None:
    delete(path, lambda number: number == 10)
    DeltaTable(path).index.create("id")
    assert opened(path, "id = 10") == 1
    domains = DeltaTable(path).snapshot.domain_metadata()
    restore(LocalStore(path), version=3)
    Transaction(Snapshot.load(LocalStore(path))).set_domain(domains["pydelta.index.id"]).commit("TEST", {})
    assert DeltaTable(path).to_arrow(filter="id = 10").num_rows == 1 and opened(path, "id = 10") == 1


def test_dml_reads_only_candidates_and_finds_its_rows(path: str) -> None:
    DeltaTable(path).index.create("id")
    dml = Dml.begin(LocalStore(path), "DELETE", time_zone="UTC")
    assert dml.find_candidates(parse_predicate("id = 10", DeltaTable(path).struct_type)).files.num_rows == 1


def test_index_covers_a_column_of_a_mapped_table(path: str) -> None:
    set_properties(LocalStore(path), {"delta.columnMapping.mode": "name"})
    DeltaTable(path).index.create("id")
    assert opened(path, "id = 10") == 1


def test_renamed_column_stays_indexed_and_its_old_name_is_free(path: str) -> None:
    set_properties(LocalStore(path), {"delta.columnMapping.mode": "name"})
    DeltaTable(path).index.create("s")
    DeltaTable(path).alter.rename_column("s", "key")
    assert opened(path, "key = 'key 12'") == 1
    rows = {"id": [1, 3], "s": ["key 12", "key 3"], "key": ["key 1", "key 12"]}
    write_delta(path, pa.table(rows), mode="append", merge_schema=True)
    DeltaTable(path).index.refresh()
    assert opened(path, "key = 'key 12'") == 2
    assert opened(path, "s = 'key 12'") == 5, "the index covers the renamed column, not the new one"


def test_widened_column_stays_indexed(tmp_path: Path) -> None:
    path = str(tmp_path / "wide")
    for number in range(3):
        write_delta(path, pa.table({"id": pa.array([0, number * 2, 100], pa.int32())}), mode="append")
    set_properties(LocalStore(path), {"delta.enableTypeWidening": "true"})
    DeltaTable(path).index.create("id")
    write_delta(path, pa.table({"id": pa.array([2**40], pa.int64())}), mode="append", merge_schema=True)
    assert DeltaTable(path).schema().field("id").type == pa.int64()
    assert opened(path, "id = 4") == 1 and opened(path, "id = 3") == 0


def test_column_without_a_value_is_covered_by_an_empty_segment(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = str(tmp_path)
    for _ in range(3):
        write_delta(root, pa.table({"x": pa.nulls(2, pa.int64())}), mode="append")
    created = DeltaTable(root).index.create("x", "ix")
    assert DeltaTable(root).index.refresh("ix") == created
    assert DeltaTable(root).to_arrow(filter="x = 1 OR x IS NULL").num_rows == 6
    assert not caplog.records


def test_index_matches_legacy_timestamps_in_any_session_zone(tmp_path: Path) -> None:
    for year in (1850, 1860):
        days = pa.array([datetime(year, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
        table = pa.table({"t": days}).replace_schema_metadata({"org.apache.spark.version": "2.4.5"})
        pq.write_table(table, tmp_path / f"{year}.parquet")
    DeltaTable.convert(str(tmp_path)).index.create("t")
    for zone in ("UTC", "America/New_York", "Asia/Tokyo"):
        table = DeltaTable(str(tmp_path), session_timezone=zone)
        for instant in table.to_arrow()["t"].to_pylist():
            assert table.to_arrow(filter=Comparison("=", Column(("t",)), Literal(instant, TIMESTAMP))).num_rows == 1


def test_column_of_another_type_is_not_looked_up(path: str) -> None:
    DeltaTable(path).index.create("id")
    write_delta(path, pa.table({"id": ["0", "10", "11"]}), mode="overwrite", overwrite_schema=True)
    write_delta(path, pa.table({"id": ["10", "0", "11"]}), mode="append")
    assert opened(path, "id = '10'") == 2 and names(path)["id"]["usable"] is False
    DeltaTable(path).index.refresh()
    assert opened(path, "id = '105'") == 0 and names(path)["id"]["usable"] is True


def test_index_of_dropped_column_does_not_block_other_refreshes(path: str) -> None:
    set_properties(LocalStore(path), {"delta.columnMapping.mode": "name"})
    for column in ("id", "s"):
        DeltaTable(path).index.create(column)
    DeltaTable(path).alter.drop_columns(["id"])
    write_delta(path, pa.table({"s": ["key 10", "key 990"]}), mode="append")
    stray = Path(path) / "_pydelta_index" / "gone" / "0.parquet"
    stray.parent.mkdir()
    stray.write_bytes(b"x")
    in_two_days = 1000 * int(stray.stat().st_mtime) + 2 * 86_400_000
    with pytest.raises(SchemaMismatchError, match="The column id of the index id is not in the table any more"):
        TableIndexes(LocalStore(path), lambda: in_two_days).refresh()
    assert (names(path)["s"]["uncovered"], names(path)["id"]["usable"], stray.exists()) == (0, False, False)
    DeltaTable(path).index.drop("id")
    assert DeltaTable(path).index.refresh() == DeltaTable(path).version


def test_index_survives_vacuum_and_checkpoint(path: str) -> None:
    DeltaTable(path).index.create("id")
    DeltaTable(path).checkpoint()
    vacuum(LocalStore(path), VacuumRequest(0, check_retention=False), lambda: 2**50)
    assert opened(path, "id = 10") == 1


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("column", "name", "error", "condition"),
    [
        ("nowhere", None, SchemaMismatchError, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("n", None, UnsupportedOperationError, "DELTA_OPERATION_NOT_SUPPORTED"),
        ("id", "a-b", InvalidOptionError, "DELTA_ILLEGAL_OPTION"),
        ("id", "", InvalidOptionError, "DELTA_ILLEGAL_OPTION"),
        ("S", None, UnsupportedOperationError, "INDEX_ALREADY_EXISTS"),
        ("id", "S", UnsupportedOperationError, "INDEX_ALREADY_EXISTS"),
    ],
)
def test_index_that_cannot_be_is_refused(
    path: str, column: str, name: str | None, error: type[DeltaError], condition: str
) -> None:
    version = DeltaTable(path).index.create("s")
    with pytest.raises(error) as caught:
        DeltaTable(path).index.create(column, name)
    assert caught.value.error_class == condition and DeltaTable(path).version == version


def test_partition_column_is_refused(tmp_path: Path) -> None:
    write_delta(str(tmp_path / "t"), pa.table({"p": [1], "v": [[1]]}), partition_by=["p"])
    for column in ("p", "v"):
        with pytest.raises(UnsupportedOperationError, match=column):
            TableIndexes(LocalStore(str(tmp_path / "t"))).create(column)


def test_index_that_is_not_there_is_named(path: str) -> None:
    DeltaTable(path).index.create("s")
    for method in (DeltaTable(path).index.drop, DeltaTable(path).index.refresh):
        with pytest.raises(UnsupportedOperationError, match="Its indexes: s") as caught:
            method("x")
        assert caught.value.error_class == "INDEX_NOT_FOUND"


def test_table_that_may_not_be_written_gets_no_index(path: str) -> None:
    log = Path(path) / "_delta_log" / f"{4:020}.json"
    protocol = '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":["unheardOf"]}}'
    log.write_text(protocol)
    with pytest.raises(UnsupportedTableFeatureError):
        TableIndexes(LocalStore(path)).create("id")


# ---------------------------------------------------------------- what cannot be used


def damaged(path: str, how: str) -> None:
    (file,) = (Path(path) / "_pydelta_index" / "id").iterdir()
    data = bytearray(file.read_bytes())
    if how == "missing":
        file.unlink()
        return
    if how == "cut":
        data = data[:-9]
    elif how == "page":
        data[100] ^= 0xFF
    elif how == "footer":
        place = data.index(b"pydelta.index.files") + 60
        data[place] ^= 0x01
    elif how == "other":
        data += b"PAR1"
    file.write_bytes(bytes(data))


@pytest.mark.parametrize("how", ["missing", "cut", "page", "footer", "other"])
def test_damaged_segment_is_not_used_and_is_made_anew(path: str, how: str, caplog: pytest.LogCaptureFixture) -> None:
    DeltaTable(path).index.create("id")
    damaged(path, how)
    with caplog.at_level(logging.WARNING, "delta_py"):
        assert opened(path, "id = 10") == 4 and opened(path, "id = 12") == 4
    assert len([record for record in caplog.records if "index id" in record.message]) == 1
    segments._open_segments.clear()
    if how == "page":  # only a lookup notices it
        DeltaTable(path).index.drop("id")
        DeltaTable(path).index.create("id")
    DeltaTable(path).index.refresh()
    assert opened(path, "id = 10") == 1


INDEX = '{"format":1,"hash":"mix64-1","column":["id"],"kind":"integral","segments":[SEGMENT]}'
SEGMENTS = [
    "1",
    "{}",
    '{"path":"x","rows":1,"files":1,"bytes":1}',
    '{"path":"_pydelta_index/../x","rows":1,"files":1,"bytes":1}',
    '{"path":"_pydelta_index/id/x","rows":-1,"files":1,"bytes":1}',
]


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "{}", '{"format":2,"hash":"mix64-1"}', INDEX.replace("mix64-1", "other").replace("SEGMENT", "")]
    + [INDEX.replace("SEGMENT", segment) for segment in SEGMENTS],
)
def test_domain_of_another_version_is_left_alone(path: str, text: str, caplog: pytest.LogCaptureFixture) -> None:
    DeltaTable(path).index.create("s")
    Transaction(Snapshot.load(LocalStore(path))).set_domain(DomainMetadata("pydelta.index.odd", text)).commit("TEST", {})
    with caplog.at_level(logging.WARNING, "delta_py"):
        assert opened(path, "id = 10") == 4 and opened(path, "s = 'key 10'") == 1
    assert len([record for record in caplog.records if "index odd" in record.message]) == 1
    assert names(path)["odd"]["usable"] is False
    DeltaTable(path).index.refresh()
    with pytest.raises(UnsupportedOperationError, match="odd"):
        DeltaTable(path).index.refresh("odd")
    DeltaTable(path).index.drop("odd")
    assert list(names(path)) == ["s"]


def test_segments_that_no_index_names_go_when_they_are_a_day_old(path: str) -> None:
    DeltaTable(path).index.create("id")
    stray = Path(path) / "_pydelta_index" / "id" / "stray.parquet"
    stray.write_bytes(b"x")
    DeltaTable(path).index.refresh()
    assert stray.exists()
    in_two_days = 1000 * int(stray.stat().st_mtime) + 2 * 86_400_000
    TableIndexes(LocalStore(path), lambda: in_two_days).refresh()
    assert not stray.exists() and opened(path, "id = 10") == 1


@pytest.mark.parametrize(("limits", "files"), [(BuildLimits(), 2), (BuildLimits(merge_count=100), 3)])
def test_two_refreshes_at_once_keep_both_what_they_cover(
    path: str, limits: BuildLimits, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If both rewrite the first segment, the second one starts again, and has nothing to do."""
    DeltaTable(path).index.create("id")
    append(path, 0)
    commit = Transaction.commit
    calls: list[int] = []

    def late(self: Transaction, operation: str, *rest: Any, **named: Any) -> int:
        if operation == "REFRESH INDEX" and not calls:
            calls.append(1)
            append(path, 1)
            calls.append(DeltaTable(path).index.cover("id", limits))
        return commit(self, operation, *rest, **named)

    monkeypatch.setattr(Transaction, "commit", late)
    DeltaTable(path).index.cover("id", limits)
    index_row = names(path)["id"]
    assert (index_row["uncovered"], opened(path, "id = 10"), opened(path, "id = 11")) == (0, 2, 0)
    assert len(list((Path(path) / "_pydelta_index" / "id").iterdir())) == files


# ---------------------------------------------------------------- clones


def cloned(path: str, **options: Any) -> str:
    copy = f"{path}.copy"
    DeltaTable(path).clone(copy, **options)
    nothing_remembered()
    return copy


def nothing_remembered() -> None:
    for cache in (index_upkeep._uncovered, segments._open_segments, lookup._warned):
        cache.clear()


def test_deep_clone_has_the_index_of_its_source(path: str, caplog: pytest.LogCaptureFixture) -> None:
    DeltaTable(path).index.create("id")
    copy = cloned(path)
    (index,) = DeltaTable(copy).index.list().to_pylist()
    assert (index["name"], index["files"], index["uncovered"], index["usable"]) == ("id", 4, 0, True)
    assert opened(copy, "id = 12") == 1
    append(path, 4)
    DeltaTable(path).clone(copy, replace=True)
    (index,) = DeltaTable(copy).index.list().to_pylist()
    assert (index["files"], index["uncovered"], index["segments"]) == (5, 0, 2), "what was covered is not read again"
    assert caplog.text == ""


def test_shallow_clone_has_the_index_without_its_files(path: str, caplog: pytest.LogCaptureFixture) -> None:
    DeltaTable(path).index.create("id")
    copy = cloned(path, shallow=True)
    assert opened(copy, "id = 12") == 4
    (index,) = DeltaTable(copy).index.list().to_pylist()
    assert (index["name"], index["files"], index["uncovered"], index["usable"]) == ("id", 0, 4, True)
    assert caplog.text == "", "an index without files is none that cannot be used"
    DeltaTable(copy).index.refresh()
    assert opened(copy, "id = 12") == 1
    append(path, 4)
    DeltaTable(path).clone(copy, shallow=True, replace=True)
    nothing_remembered()
    assert opened(copy, "id = 12") == 2, "the new file is not covered"
    assert not list(Path(path, "_pydelta_index").rglob("*.copy"))
    assert opened(path, "id = 12") == 2


def test_table_that_a_clone_replaces_loses_its_own_indexes(path: str, tmp_path: Path) -> None:
    copy = f"{path}.copy"
    for number in range(3):
        append(copy, number)
    DeltaTable(copy).index.create("s")
    DeltaTable(copy).index.create("n.x", name="id")
    DeltaTable(path).index.create("id")
    cloned(path, shallow=True, replace=True)
    assert DeltaTable(copy).index.list().to_pydict() | {"bytes": 0} == {
        "name": ["id"],
        "column": ["id"],
        "files": [0],
        "uncovered": [4],
        "segments": [0],
        "rows": [0],
        "bytes": 0,
        "usable": [True],
    }


def test_clone_has_no_index_of_an_unknown_format(path: str, caplog: pytest.LogCaptureFixture) -> None:
    DeltaTable(path).index.create("id")
    domain = DomainMetadata("pydelta.index.other", '{"format": 99}')
    Transaction(Snapshot.load(LocalStore(path))).set_domain(domain).commit("TEST", {})
    for shallow in (True, False):
        copy = cloned(path, shallow=shallow, replace=shallow is False)
        assert DeltaTable(copy).index.list()["name"].to_pylist() == ["id"]
        opened(copy, "id = 12")
    assert "index other" not in caplog.text


def test_deep_clone_stands_where_its_index_cannot_be_made(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("PYDELTA_POST_COMMIT_ERRORS", raising=False)
    DeltaTable(path).index.create("id")

    def fails(*_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(TableIndexes, "cover", fails)
    copy = cloned(path)
    assert "the disk is full" in caplog.text
    assert opened(copy, "id = 12") == 4
