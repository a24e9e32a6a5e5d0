"""The facts of a report, computed by hand on small tables. JSON, metrics and the page have the same facts."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from delta_py import DeltaTable
from delta_py.errors import DeltaError
from delta_py.expressions.parse import parse_predicate
from delta_py.report.facts import Commit, OptimizeDebt, Partition, SizeBin, TableFacts, Unknown, VacuumReason
from delta_py.report.gathering import ReportRequest, gather
from delta_py.report.html.page import page
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from tests.support.documents.json_forms import FORMS, faults
from tests.support.stores.coordination import coordinated, create_coordinated, ledger_url
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables import report_states
from tests.support.tables.report_states import DAY_MS, MB, NOW_MS, START_MS, STATES, bounds, info
from tests.support.tables.table_builder import TableBuilder, add, remove, stats, vector

DAYS = ("2024-05-01", "2024-05-02", None)


def facts_of(store: ObjectStore, **request: Any) -> TableFacts:
    return gather(Snapshot.load(store), ReportRequest(now_ms=NOW_MS, **request))


@pytest.fixture
def small() -> MemoryStore:
    """Four files in three partitions, two of them with deletion vectors, one removed eight days ago, one just now."""
    store = MemoryStore("/lake/small")
    table = TableBuilder(store)
    configuration = {"delta.targetFileSize": "10kb", "delta.enableDeletionVectors": "true"}
    columns = (("x", "long"), ("y", "long"), ("day", "string"))
    metadata = table.metadata(*columns, partition_by=["day"], configuration=configuration)
    table.commit(
        info(START_MS, "CREATE TABLE", "maker/1", "ada"), table.protocol(features=["deletionVectors"]), metadata, time_ms=START_MS
    )
    files = [
        add("a", size=1_000, partitionValues={"day": DAYS[0]}, stats=bounds(100, x=(0, 10), y=(0, 10))),
        add("b", size=20_000, partitionValues={"day": DAYS[0]}, stats=bounds(200, x=(10, 20), y=(0, 10))),
        add("c", size=3_000, partitionValues={"day": DAYS[1]}, stats=bounds(300, x=(20, 30), y=(0, 10))),
        add("d", size=4_000, partitionValues={"day": DAYS[2]}, stats=bounds(400, x=(30, 40), y=(0, 10))),
        add("gone", size=500, partitionValues={"day": DAYS[2]}),
        add("old", size=700, partitionValues={"day": DAYS[2]}),
    ]
    txn = {"txn": {"appId": "loader", "version": 7, "lastUpdated": START_MS + 5}}
    table.commit(info(START_MS + 1_000, "WRITE", "writer/2"), txn, *files, time_ms=START_MS + 1_000)
    marked = [
        {"add": {**files[number]["add"], "deletionVector": {**vector(offset=number), "cardinality": rows}}}
        for number, rows in ((0, 40), (3, 4))
    ]
    undone = [remove(name, size=size, deletionTimestamp=START_MS) for name, size in (("a", 1_000), ("d", 4_000), ("old", 700))]
    undone.append(remove("gone", size=500, deletionTimestamp=NOW_MS - DAY_MS))
    table.commit(info(START_MS + 61_000, "DELETE", "writer/2"), *undone, *marked, time_ms=START_MS + 61_000)
    table.checksum()
    return store


def test_identity_is_that_of_the_metadata(small: MemoryStore) -> None:
    identity = facts_of(small).identity
    assert (identity.root, identity.version, identity.columns, identity.partition_columns) == ("/lake/small", 2, 3, ("day",))
    assert (identity.min_reader, identity.min_writer, identity.features) == (3, 7, ("deletionVectors",))
    assert identity.timestamp_ms == START_MS + 61_000
    assert identity.clustering_columns == () and "00000000000000000002.crc" in identity.source


def test_commits_are_counted_by_operation_and_writer(small: MemoryStore) -> None:
    commits = facts_of(small).commits
    assert not isinstance(commits, Unknown)
    assert (commits.in_log, commits.oldest_version, len(commits.commits)) == (3, 0, 3)
    log_bytes = [len(small.objects[f"_delta_log/{version:020d}.json"][0]) for version in range(3)]
    assert commits.commits[1] == Commit(1, START_MS + 1_000, "WRITE", None, "writer/2", 6, 0, 29_200, log_bytes[1])
    assert commits.commits[2] == Commit(0, START_MS, "CREATE TABLE", "ada", "maker/1", 0, 0, 0, log_bytes[0])
    totals = {total.operation: total for total in commits.by_operation}
    assert (totals["DELETE"].files_added, totals["DELETE"].files_removed, totals["DELETE"].bytes_added) == (2, 4, 5_000)
    writers = [(total.engine, total.user, total.commits) for total in commits.by_writer]
    assert writers == [("writer/2", None, 2), ("maker/1", "ada", 1)]


def test_report_reads_only_the_requested_newest_commits(small: MemoryStore) -> None:
    facts = facts_of(small, commits=1)
    assert not isinstance(facts.commits, Unknown) and not isinstance(facts.streams, Unknown)
    assert (facts.commits.in_log, [commit.version for commit in facts.commits.commits]) == (3, [2])
    (stream,) = facts.streams.streams
    assert (stream.table_version, stream.batch, stream.last_updated_ms) == (None, 7, START_MS + 5)
    assert isinstance(stream.versions_behind, Unknown) and "commit 2" in stream.versions_behind.unknown


def test_streams_lag_by_versions_and_time(small: MemoryStore) -> None:
    streams = facts_of(small).streams
    assert not isinstance(streams, Unknown) and streams.count == 1
    (stream,) = streams.streams
    assert (stream.app_id, stream.batch, stream.table_version) == ("loader", 7, 1)
    assert (stream.versions_behind, stream.ms_behind) == (1, 60_000)


def test_files_are_counted_by_size(small: MemoryStore) -> None:
    files = facts_of(small).files
    assert not isinstance(files, Unknown)
    assert (files.count, files.bytes, files.rows, files.median_bytes, files.largest_bytes) == (4, 28_000, 956, 3_500, 20_000)
    assert files.sizes == (SizeBin(0, 4_096, 3, 8_000), SizeBin(4_096, 16_384, 0, 0), SizeBin(16_384, 65_536, 1, 20_000))
    assert (files.target_bytes, files.small_count, files.small_bytes) == (10_240, 3, 8_000)
    assert files.optimize == OptimizeDebt(files=1, bytes=1_000, bins=1)  # a: 40 of its 100 rows are deleted


def test_partitions_are_ordered_by_size(small: MemoryStore) -> None:
    partitions = facts_of(small).partitions
    assert partitions is not None and not isinstance(partitions, Unknown)
    expected = (Partition((DAYS[0],), 2, 21_000), Partition((None,), 1, 4_000), Partition((DAYS[1],), 1, 3_000))
    assert partitions.largest == expected
    assert (partitions.count, partitions.median_bytes, partitions.skew, partitions.median_files) == (3, 4_000, 5.25, 1.0)
    assert partitions.profile == (21_000.0, 4_000.0, 3_000.0)
    assert partitions.small_count == 0  # the only one with two files is above the target


def test_deleted_rows_are_those_of_the_vectors(small: MemoryStore) -> None:
    vectors = facts_of(small).vectors
    assert not isinstance(vectors, Unknown)
    assert (vectors.files, vectors.deleted_rows, vectors.rows, vectors.bytes) == (2, 44, 500, 80)
    assert vectors.shares == ((0.05, 1), (0.1, 0), (0.25, 0), (0.5, 1), (1.0, 0))
    assert (vectors.beyond, vectors.files_without_share) == (1, 0)


def test_skipping_has_shares_of_layout_and_file_rectangles(small: MemoryStore) -> None:
    skipping = facts_of(small).skipping
    assert not isinstance(skipping, Unknown) and not isinstance(skipping.map, Unknown)
    layout = {row["column"]: row for row in DeltaTable("/lake/small", store=small).layout().to_pylist()}
    columns_by_name = {column.column: column for column in skipping.columns}
    assert {name: column.point_share for name, column in columns_by_name.items()} == {
        n: row["point_share"] for n, row in layout.items()
    }
    assert columns_by_name["x"].point_share == pytest.approx(0.25, abs=0.01) and columns_by_name["y"].point_share == 1.0
    file_map = skipping.map
    assert (file_map.x, file_map.y, file_map.files, file_map.without) == ("x", "y", 4, 0)
    assert (file_map.x_low, file_map.x_high, file_map.y_low, file_map.y_high) == ("0", "40", "0", "10")
    assert sorted(file_map.rectangles) == [(at, 0.0, at + 0.25, 1.0) for at in (0.0, 0.25, 0.5, 0.75)]
    assert file_map.density == () and file_map.mean_area == pytest.approx(0.25)


def test_map_is_over_the_columns_of_the_clustering() -> None:
    skipping = report_states.clustered().facts.skipping
    assert not isinstance(skipping, Unknown) and not isinstance(skipping.map, Unknown)
    assert skipping.map.why == "the first two columns of the clustering"
    assert [column.role for column in skipping.columns] == ["clustering", "clustering"]


def test_map_is_over_the_columns_of_the_newest_z_order() -> None:
    store = MemoryStore()
    table = TableBuilder(store)
    columns = (("a", "long"), ("b", "long"), ("c", "long"))
    files = [add(str(n), stats=bounds(10, a=(n, n), b=(n, n + 5), c=(0, 9))) for n in range(3)]
    table.commit(table.protocol(), table.metadata(*columns), *files)
    for names in (["a", "b"], ["C", "b"]):
        table.commit(info(START_MS, "OPTIMIZE", operationParameters={"zOrderBy": json.dumps(names)}))
    table.commit(info(START_MS, "OPTIMIZE", operationParameters={"zOrderBy": "[]"}))
    skipping = facts_of(store).skipping
    assert not isinstance(skipping, Unknown) and not isinstance(skipping.map, Unknown)
    assert (skipping.map.x, skipping.map.y) == ("c", "b")
    assert [column.role for column in skipping.columns] == [None, "Z-order", "Z-order"]


@pytest.mark.parametrize(
    ("kind", "low", "high", "ends"),
    [
        ("date", "0001-01-01", "2024-05-01", ("0001-01-01", "2024-05-01")),
        ("date", "2024-05-01", "+12024-05-01", None),
        ("timestamp", "2024-05-01T00:46:59.999Z", "2024-06-08T23:32:00.000Z", ("2024-05-01 00:46:59", "2024-06-08 23:32:00")),
        # Bounds of times are widened by a millisecond, here to a time for which no calendar has a day.
        ("timestamp_ntz", "0001-01-01T00:00:00.001", "9999-12-31T23:59:59.999", ("0001-01-01 00:00:00", "253402300800000 ms")),
        ("double", 1 / 3, 1e300, ("0.333333", "1e+300")),
        ("decimal(10,2)", 1.25, 7, ("1.25", "7.00")),
        ("string", "a", "ö", ("a", "ö")),
    ],
)
def test_ends_of_the_map_are_read_by_people(kind: str, low: object, high: object, ends: tuple[str, str] | None) -> None:
    store = MemoryStore()
    table = TableBuilder(store)
    features = ["timestampNtz"] if kind == "timestamp_ntz" else None
    file = add("a", stats=bounds(10, a=(low, high), b=(0, 9)))
    table.commit(table.protocol(features=features), table.metadata(("a", kind), ("b", "long")), file)
    skipping = facts_of(store).skipping
    assert not isinstance(skipping, Unknown)
    if ends is None:  # a bound that is not a value of the type counts as missing
        assert isinstance(skipping.map, Unknown)
        return
    assert not isinstance(skipping.map, Unknown)
    ends_by_axis = {
        skipping.map.x: (skipping.map.x_low, skipping.map.x_high),
        skipping.map.y: (skipping.map.y_low, skipping.map.y_high),
    }
    assert tuple(end.removesuffix(" UTC") for end in ends_by_axis["a"]) == ends and ends_by_axis["b"] == ("0", "9")


def test_queries_choose_the_columns_of_the_map_and_the_advice() -> None:
    store = MemoryStore("/lake/asked")
    table = TableBuilder(store)
    files = [add(str(n), stats=bounds(10, a=(n, n), b=(0, 9), c=(0, 9))) for n in range(6)]
    table.commit(table.protocol(), table.metadata(*((name, "long") for name in "abc")), *files)
    snapshot = Snapshot.load(store)
    filtered_table = DeltaTable("/lake/asked", store=store)
    for _ in range(3):
        filtered_table.scan(filter=parse_predicate("b = 3 AND c = 1", snapshot.schema))
    filtered_table.scan(filter="c = 1")
    facts = facts_of(store)
    assert not isinstance(facts.skipping, Unknown) and not isinstance(facts.skipping.map, Unknown)
    assert (facts.skipping.map.x, facts.skipping.map.y) == ("c", "b")
    (item,) = [item for item in facts.advice if "order" in item.title]
    assert item.cli == "pydelta zorder /lake/asked --by c,b"
    assert item.sql == "OPTIMIZE pydelta.`/lake/asked` ZORDER BY (c, b)"
    assert item.python == "DeltaTable('/lake/asked').optimize.z_order(['c', 'b'])"


def test_log_tells_checkpoints_and_checksums(small: MemoryStore) -> None:
    log = facts_of(small).log
    assert not isinstance(log, Unknown)
    assert (log.newest_version, log.earliest_version, log.commits, log.gaps) == (2, 0, 3, ())
    assert (log.checkpoints, log.newest_checkpoint, log.commits_since_checkpoint, log.checkpoint_interval) == (0, None, 3, 10)
    assert (log.checksums, log.checksum, log.checksum_detail, log.faults) == (1, "agrees", None, ())
    commits = [data for name, (data, _) in small.objects.items() if name.endswith(".json")]
    assert (log.files_to_load, log.bytes_to_load) == (3, sum(map(len, commits))) and log.commit_bytes == log.bytes_to_load


def test_removed_files_are_those_that_are_not_live_again(small: MemoryStore) -> None:
    retention = facts_of(small).retention
    assert not isinstance(retention, Unknown)
    assert (retention.tombstones, retention.tombstone_bytes, retention.without_size, retention.without_time) == (2, 1_200, 0, 0)
    assert (retention.expired, retention.expired_bytes) == (1, 700)
    assert (retention.deleted_file_ms, retention.log_ms) == (7 * DAY_MS, 30 * DAY_MS)
    assert (retention.last_vacuum_ms, retention.last_vacuum_version) == (None, None)
    assert isinstance(retention.vacuum, Unknown)


def test_vacuum_is_asked_only_if_wanted(small: MemoryStore) -> None:
    small.now_ms = START_MS
    small.put("gone", b"12345")
    small.put("old", b"123")
    small.put("stray", b"1")
    retention = facts_of(small, vacuum=True).retention
    assert not isinstance(retention, Unknown) and not isinstance(retention.vacuum, Unknown)
    assert (retention.vacuum.files, retention.vacuum.bytes) == (2, 4)
    assert set(retention.vacuum.reasons) == {
        VacuumReason("it was removed", 1, 3),
        VacuumReason("no version that the log knows of has it", 1, 1),
    }
    assert "old" in small.objects and "stray" in small.objects  # nothing is deleted
    small.calls.clear()
    facts_of(small)
    assert ("list_recursive", "") not in small.calls


# ---------------------------------------------------------------- what is unknown


def test_numbers_that_files_do_not_tell_are_unknown_and_not_zero() -> None:
    facts = report_states.no_statistics().facts
    assert not isinstance(facts.files, Unknown) and not isinstance(facts.skipping, Unknown)
    assert isinstance(facts.files.rows, Unknown) and facts.files.files_without_row_count == 29
    assert [(column.point_share, column.range_share) for column in facts.skipping.columns] == [(None, None)]
    assert isinstance(facts.skipping.map, Unknown)
    assert not isinstance(facts.retention, Unknown) and not isinstance(facts.streams, Unknown)
    assert isinstance(facts.retention.last_vacuum_ms, Unknown) and "no commit from 2 on" in facts.retention.last_vacuum_ms.unknown
    (stream,) = facts.streams.streams
    assert isinstance(stream.versions_behind, Unknown)


def test_sum_of_sizes_is_unknown_where_one_is_missing() -> None:
    store = MemoryStore()
    table = TableBuilder(store)
    table.create(add("a", size=1), add("b", size=2))
    table.commit(remove("a", size=1, deletionTimestamp=1), {"remove": {"path": "b", "dataChange": True}})
    retention = facts_of(store).retention
    assert not isinstance(retention, Unknown)
    assert (retention.tombstones, retention.without_size, retention.without_time) == (2, 1, 1)
    assert isinstance(retention.tombstone_bytes, Unknown)
    assert (retention.expired, retention.expired_bytes) == (1, 1)


def test_broken_log_is_reported_fault_by_fault() -> None:
    facts = report_states.broken().facts
    log = facts.log
    assert not isinstance(log, Unknown) and not isinstance(log.faults, Unknown)
    assert {fault.kind for fault in log.faults} == {"commit", "checkpoint", "checksum", "lastCheckpoint"}
    assert (log.gaps, log.incomplete_checkpoints, log.checksum, log.last_checkpoint) == (((2, 2),), 1, "damaged", 4)
    assert facts.advice[0].urgent and facts.advice[0].sql == "FSCK REPAIR TABLE pydelta.`/lake/broken` DRY RUN"


def test_unreadable_files_are_unknown_but_other_facts_are_known() -> None:
    facts = report_states.lost_files().facts
    for part in (facts.files, facts.partitions, facts.vectors, facts.skipping):
        assert isinstance(part, Unknown) and part.unknown
    assert not isinstance(facts.retention, Unknown) and isinstance(facts.retention.tombstones, Unknown)
    assert facts.identity.version == 1 and not isinstance(facts.log, Unknown)
    assert page(facts).count("unknown") > 10


@pytest.mark.parametrize("name", ["delta.targetFileSize", "delta.checkpointInterval", "delta.deletedFileRetentionDuration"])
def test_invalid_property_makes_only_dependent_facts_unknown(name: str) -> None:
    store = MemoryStore()
    TableBuilder(store).commit(
        TableBuilder(store).protocol(), TableBuilder(store).metadata(configuration={name: "soon"}), add("a", stats=stats(1, 1, 1))
    )
    facts = facts_of(store)
    assert not isinstance(facts.files, Unknown) and facts.files.count == 1
    assert "soon" in facts.to_json() and page(facts)


def test_checksum_that_contradicts_the_log_is_told() -> None:
    store = MemoryStore()
    table = TableBuilder(store)
    table.create(add("a"))
    table.checksum(numFiles=2)
    log = facts_of(store).log
    assert not isinstance(log, Unknown)
    assert log.checksum == "contradicts" and log.checksum_detail is not None and "numFiles" in log.checksum_detail
    unchecked = facts_of(store, check_log=False)
    assert not isinstance(unchecked.log, Unknown) and isinstance(unchecked.log.faults, Unknown)
    assert unchecked.advice[0].title == "The version checksum contradicts the log"


def test_storage_that_fails_makes_parts_unknown(small: MemoryStore) -> None:
    snapshot = Snapshot.load(small)

    def fail(moment: str, call: str, path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    small.hook = fail
    facts = gather(snapshot, ReportRequest(now_ms=NOW_MS))
    assert all(isinstance(part, Unknown) for part in (facts.commits, facts.files, facts.log, facts.streams, facts.skipping))
    assert isinstance(facts.log, Unknown) and "Permission denied" in facts.log.unknown
    assert facts.advice == () and page(facts)


# ---------------------------------------------------------------- all states


@pytest.mark.parametrize("name", STATES)
def test_facts_of_a_state_are_json(name: str) -> None:
    facts = STATES[name]().facts
    value = json.loads(facts.to_json())
    assert faults(value, FORMS["report"]) == []
    assert value["identity"]["version"] == facts.identity.version


def test_empty_table_has_no_files_and_nothing_to_do() -> None:
    facts = report_states.empty().facts
    assert not isinstance(facts.files, Unknown) and not isinstance(facts.skipping, Unknown)
    files = facts.files
    assert (files.count, files.bytes, files.rows, files.median_bytes, files.sizes) == (0, 0, 0, None, ())
    assert isinstance(facts.skipping.map, Unknown) and facts.advice == ()


def test_many_partitions_become_60_profile_points_and_20_largest() -> None:
    facts = report_states.many_partitions().facts
    partitions = facts.partitions
    assert partitions is not None and not isinstance(partitions, Unknown)
    assert (partitions.count, len(partitions.largest), len(partitions.profile)) == (2_000, 20, 60)
    assert partitions.largest[0] == Partition(("shop 0",), 2, 2 * (400 * MB + 1_000))
    assert partitions.skew is not None and partitions.skew > 900
    assert any("2,000 partitions" in item.title for item in facts.advice)


def test_hundred_thousand_files_in_little_time_and_a_small_page() -> None:
    store = report_states.many_files_table()
    begin = time.monotonic()
    report = report_states.report(store)
    seconds = time.monotonic() - begin
    files, skipping = report.facts.files, report.facts.skipping
    assert not isinstance(files, Unknown) and not isinstance(skipping, Unknown) and not isinstance(skipping.map, Unknown)
    assert (files.count, files.rows) == (100_000, 100_000_000)
    assert skipping.map.rectangles == () and len(skipping.map.density) == 40
    assert sum(size.files for size in files.sizes) == 100_000
    text = report.html()
    assert len(text.encode()) < 2_000_000
    assert seconds < 120, "a bound for slow machines: 6 seconds are usual"


def test_report_of_an_older_version_speaks_of_it(small: MemoryStore) -> None:
    facts = gather(Snapshot.load(small, 1), ReportRequest(now_ms=NOW_MS))
    assert not isinstance(facts.files, Unknown) and not isinstance(facts.commits, Unknown) and not isinstance(facts.log, Unknown)
    assert (facts.files.count, facts.commits.in_log, facts.log.newest_version) == (6, 2, 2)
    assert isinstance(facts.files.rows, Unknown)


def test_table_that_cannot_be_opened_is_an_error() -> None:
    with pytest.raises(DeltaError):
        DeltaTable("/lake/none", store=MemoryStore()).report()


def test_report_of_coordinated_table_has_unpublished_commits(tmp_path: Path) -> None:
    url = ledger_url(tmp_path)
    create_coordinated(tmp_path / "t", url, {"id": [0, 1, 2]}, delta__enableDeletionVectors="true")
    DeltaTable(str(tmp_path / "t"), store=coordinated(tmp_path / "t", url)).delete("id = 1")
    facts = facts_of(coordinated(tmp_path / "t", url))
    assert not isinstance(facts.commits, Unknown) and not isinstance(facts.files, Unknown)
    assert not isinstance(facts.log, Unknown) and not isinstance(facts.vectors, Unknown)
    assert [(commit.version, commit.operation) for commit in facts.commits.commits] == [(1, "DELETE"), (0, "WRITE")]
    assert (facts.files.rows, facts.vectors.deleted_rows, facts.log.newest_version, facts.log.faults) == (2, 1, 1, ())
