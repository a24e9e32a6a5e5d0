"""OPTIMIZE that sorts rows: Z-order and clustering, without Spark."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.commit.transaction import Transaction
from delta_py.definition.create import create_table, define_table
from delta_py.errors import InvalidOptionError, RowCountMismatchError, SchemaMismatchError, UnsupportedOperationError
from delta_py.optimize import optimize_ordering
from delta_py.optimize.optimize import LocalBinWriters, optimize
from delta_py.optimize.optimize_bins import OptimizeRequest
from delta_py.optimize.optimize_metrics import Optimized
from delta_py.parquet.file_reader import read_files
from delta_py.protocol.actions import DomainMetadata
from delta_py.scan.file_groups import scan_files
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import from_arrow_schema
from delta_py.write import arranging
from tests.unit.optimize.test_optimize import VECTORS, delete, meanwhile, newest_actions

ROWS = 4000


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def rows(seed: int, count: int = ROWS, **more: Any) -> pa.Table:
    numbers = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(count) + seed * count,
            "a": numbers.integers(0, 1000, count),
            "b": numbers.integers(0, 1000, count),
            **more,
        }
    )


def make(path: str, files: int = 4, properties: dict[str, str] | None = None, **more: Any) -> None:
    for number in range(files):
        partition_by = ["p"] if "p" in more else None
        write_delta(path, rows(number, **more), mode="append", configuration=properties, partition_by=partition_by)
        properties = None


def clustered(path: str, *columns: str, files: int = 4, properties: dict[str, str] | None = None) -> None:
    schema = from_arrow_schema(rows(0, 1).schema)
    create_table(LocalStore(path), define_table(schema, cluster_by=list(columns), configuration=properties))
    for number in range(files):
        write_delta(path, rows(number), mode="append")


def ordered(path: str, *columns: str, writers: LocalBinWriters | None = None, **options: Any) -> Optimized:
    """Four files, by the size of the table."""
    size = sum(DeltaTable(path).files()["size"].to_pylist())
    request = OptimizeRequest(**{"target_file_bytes": size // 4, "z_order": columns, **options})
    return optimize(LocalStore(path), request, writers or LocalBinWriters())


def ids(path: str, version: int | None = None) -> list[int]:
    return sorted(DeltaTable(path, version=version).to_arrow(["id"])["id"].to_pylist())


def widths(path: str, column: str) -> float:
    """The mean distance between minimum and maximum of files, as a share of 1000."""
    stats = [orjson.loads(text) for text in DeltaTable(path).files()["stats"].to_pylist()]
    return float(np.mean([part["maxValues"][column] - part["minValues"][column] for part in stats])) / 1000


def tags(path: str) -> list[dict[str, str]]:
    return [add["tags"] for add in newest_actions(path, "add")]


# ---------------------------------------------------------------- Z-order


def test_rows_are_near_by_each_of_the_columns(path: str) -> None:
    make(path)
    before = DeltaTable(path).to_arrow().sort_by("id")
    outcome = ordered(path, "a", "B")
    assert (outcome.version, outcome.bins, len(outcome.removed), len(outcome.added)) == (4, 1, 4, 4)
    assert DeltaTable(path).to_arrow().sort_by("id").equals(before)
    assert widths(path, "a") < 0.7 and widths(path, "b") < 0.7 and widths(path, "id") > 9
    assert ids(path, 3) == ids(path)
    DeltaTable(path).snapshot.check_integrity()
    assert {add["dataChange"] for add in newest_actions(path, "add")} == {False}
    (info,) = newest_actions(path, "commitInfo")
    assert (info["operation"], info["operationParameters"]["zOrderBy"]) == ("OPTIMIZE", '["a","B"]')
    assert outcome.metrics()["zOrderStats"]["mergedFiles"]["num"] == 4


def test_second_run_orders_only_other_columns_or_new_rows(path: str) -> None:
    make(path)
    size = sum(DeltaTable(path).files()["size"].to_pylist()) // 4
    assert ordered(path, "a", target_file_bytes=size).bins == 1
    assert ordered(path, "a", target_file_bytes=size).bins == 0
    assert ordered(path, "b", target_file_bytes=size).bins == 1
    write_delta(path, rows(9), mode="append")
    assert ordered(path, "b", target_file_bytes=size).bins == 1
    assert ids(path) == [*range(4 * ROWS), *range(9 * ROWS, 10 * ROWS)]


def test_renamed_column_stays_ordered_and_its_old_name_is_not(path: str) -> None:
    make(path, properties={"delta.columnMapping.mode": "name"})
    size = sum(DeltaTable(path).files()["size"].to_pylist()) // 4
    assert ordered(path, "a", target_file_bytes=size).bins == 1
    DeltaTable(path).alter.rename_column("a", "c")
    DeltaTable(path).alter.rename_column("b", "a")
    assert ordered(path, "c", target_file_bytes=size).bins == 0
    assert ordered(path, "a", target_file_bytes=size).bins == 1
    assert ids(path) == list(range(4 * ROWS))


def test_each_partition_is_a_bin_and_one_in_order_stays(path: str) -> None:
    make(path, files=2, p=pa.array(["x", None] * (ROWS // 2)))
    assert ordered(path, "a", predicate="p = 'x'", target_file_bytes=10**6).bins == 1
    outcome = ordered(path, "a", target_file_bytes=10**6)
    assert (outcome.bins, len(outcome.removed), len(outcome.added)) == (1, 2, 1)
    assert ids(path) == list(range(2 * ROWS))
    assert sorted(set(DeltaTable(path).to_arrow()["p"].to_pylist()), key=str) == [None, "x"]


def test_columns_of_every_type_nested_and_null(path: str) -> None:
    count = 100
    more = {
        "t": pa.array([None if n % 7 == 0 else f"v{n % 13}" for n in range(count)]),
        "d": pa.array([datetime.date(2020, 1, 1) + datetime.timedelta(n) for n in range(count)]),
        "m": pa.array([Decimal(n) for n in range(count)], pa.decimal128(12, 2)),
        "s": pa.array([None if n % 5 == 0 else {"x.y": n} for n in range(count)], pa.struct([("x.y", pa.int64())])),
        "f": pa.array([float("nan") if n % 9 == 0 else -n for n in range(count)], pa.float64()),
    }
    for number in range(2):
        table = rows(number, count, **more)
        write_delta(path, table, mode="append")
    before = sorted(map(repr, DeltaTable(path).to_arrow().to_pylist()))
    columns = ("t", "d", "m", "f", "a")
    assert ordered(path, *columns, target_file_bytes=3000).bins == 1
    assert sorted(map(repr, DeltaTable(path).to_arrow().to_pylist())) == before


def test_nested_column_by_its_path(path: str) -> None:
    numbers = np.random.default_rng(3).integers(0, 1000, ROWS)
    write_delta(path, rows(0, s=pa.StructArray.from_arrays([pa.array(numbers)], ["x"])))
    assert ordered(path, "s.x").bins == 1
    stats = [orjson.loads(text) for text in DeltaTable(path).files()["stats"].to_pylist()]
    assert len(stats) == 4 and all(part["maxValues"]["s"]["x"] - part["minValues"]["s"]["x"] < 300 for part in stats)


def test_deleted_rows_are_gone_and_ids_of_rows_stay(path: str) -> None:
    make(path, properties={**VECTORS, "delta.enableRowTracking": "true"})
    delete(path, lambda number: number % 3 == 0)
    before = row_ids(path)
    outcome = ordered(path, "a", "b")
    assert outcome.vectors == 4 and outcome.vector_rows > ROWS
    assert row_ids(path) == before
    assert not any("deletionVector" in add for add in newest_actions(path, "add"))


def row_ids(path: str) -> dict[int, tuple[int, int]]:
    snapshot = DeltaTable(path).snapshot
    scan = plan_scan(snapshot, ["id", "_metadata"], None, ScanOptions(metadata_column=True))
    files = [file for batch in scan.files.to_batches() for file in scan_files(batch)]
    ids_by_row = {}
    for batch in read_files(scan.state, files):
        for row in batch.to_pylist():
            ids_by_row[row["id"]] = (row["_metadata"]["row_id"], row["_metadata"]["row_commit_version"])
    return ids_by_row


def test_all_rows_deleted_leave_no_file(path: str) -> None:
    make(path, files=1, properties=VECTORS)
    delete(path, lambda number: number > 0)
    delete(path, lambda number: number == 0)
    write_delta(path, rows(1, 5), mode="append")
    delete(path, lambda number: number != 6)
    assert ordered(path, "a", target_file_bytes=10**6).bins == 1
    assert ids(path) == [6]


def test_pieces_of_small_size(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make(path)
    monkeypatch.setattr(arranging, "_PIECE_BYTES", 100)
    monkeypatch.setattr(arranging, "_MOST_GATHERED_BYTES", 10_000)
    ordered(path, "a", "b")
    assert ids(path) == list(range(4 * ROWS)) and widths(path, "a") < 0.7


def test_samples_of_long_texts_are_short(path: str) -> None:
    """The driver holds the samples of all bins. The first 60 letters are the same in all rows, so they would take most of the
    memory."""
    texts = [f"{'x' * 60}{number:04}{'y' * 1_000_000}" for number in (3, 1, 4, 2)]
    for text in texts:
        write_delta(path, pa.table({"id": [int(text[60:64])], "s": [text], "b": [text.encode()]}), mode="append")
    writers = Sampling()
    ordered(path, "s", "b", writers=writers, target_file_bytes=1, check_z_order_stats=False)
    (sample,) = writers.samples
    assert sample.num_rows == 4 and sample.nbytes < 4_000
    files = [read(path, file) for file in DeltaTable(path).files()["path"].to_pylist()]
    assert sorted(files) == [[1], [2], [3], [4]]


def test_sample_of_many_partitions_is_bounded(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize_ordering, "_SAMPLED_AT_ONCE", 4_000)
    many = pa.table({"p": np.repeat(np.arange(20), 2_000), "a": np.random.default_rng(1).integers(0, 10**6, 40_000)})
    write_delta(path, many, partition_by=["p"])
    writers = Sampling()
    ordered(path, "a", writers=writers, target_file_bytes=1 << 30)
    assert len(writers.samples) == 20
    assert all(256 <= sample.num_rows <= 300 for sample in writers.samples), "of a file as many as its pieces need, no more"
    write_delta(path, many.slice(0, 2_000), mode="append")
    ordered(path, "a", writers=writers, target_file_bytes=1 << 30)
    assert writers.samples[-1].num_rows == 4_000, "of one partition all rows that there may be"


class Sampling(LocalBinWriters):
    """Keeps the samples."""

    def __init__(self) -> None:
        self.samples: list[pa.Table] = []

    def sample(self, arrangement: Any, bins: Any) -> list[pa.Table]:
        samples = super().sample(arrangement, bins)
        self.samples += samples
        return samples


def read(path: str, file: str) -> list[int]:
    ids: list[int] = pq.read_table(f"{path}/{file}", columns=["id"])["id"].to_pylist()
    return ids


@pytest.mark.parametrize(
    ("columns", "condition"),
    [
        (["p"], "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        (["nosuch"], "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        (["flag"], "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"),
        (["l"], "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"),
        (["b"], "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"),
        (["a", "A"], "DELTA_ILLEGAL_OPTION"),
    ],
)
def test_columns_that_are_refused(path: str, columns: list[str], condition: str) -> None:
    more = {"p": pa.array(["x"] * ROWS), "flag": pa.array([True] * ROWS), "l": pa.array([[1]] * ROWS)}
    make(path, files=1, properties={"delta.dataSkippingStatsColumns": "id,a,flag"}, **more)
    with pytest.raises(InvalidOptionError, match="Nothing was changed") as raised:
        ordered(path, *columns)
    assert raised.value.error_class == condition
    assert DeltaTable(path).version == 0


def test_column_without_statistics_by_request(path: str) -> None:
    make(path, files=2, properties={"delta.dataSkippingStatsColumns": "id"})
    assert ordered(path, "b", check_z_order_stats=False).bins == 1
    assert ids(path) == list(range(2 * ROWS))


def test_files_that_have_not_the_rows_of_their_statistics(path: str) -> None:
    make(path, files=2)
    first, second = DeltaTable(path).files()["path"].to_pylist()
    (Path(path) / first).write_bytes((Path(path) / second).read_bytes())
    for number in range(2):
        log = Path(path) / "_delta_log" / f"{number:020}.json"
        log.write_bytes(log.read_bytes().replace(b'numRecords\\":4000', b'numRecords\\":4001'))
    before = sorted(Path(path).rglob("*.parquet"))
    with pytest.raises(RowCountMismatchError, match="8002 rows, and 8000 were read"):
        ordered(path, "a")
    assert sorted(Path(path).rglob("*.parquet")) == before and DeltaTable(path).version == 1


# ---------------------------------------------------------------- other writers


def test_append_meanwhile_is_no_conflict(path: str) -> None:
    make(path)
    outcome = ordered(path, "a", writers=meanwhile(lambda: write_delta(path, rows(5), mode="append")))
    assert (outcome.version, outcome.bins) == (5, 1)
    assert ids(path) == [*range(4 * ROWS), *range(5 * ROWS, 6 * ROWS)]


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewriting", "vectors"])
def test_rows_deleted_meanwhile_stay_deleted(path: str, properties: dict[str, str]) -> None:
    make(path, properties=properties)
    outcome = ordered(path, "a", writers=meanwhile(lambda: delete(path, lambda number: number % 2 == 0)))
    assert (outcome.version, outcome.bins) == (5, 1), "planned anew"
    assert ids(path) == list(range(1, 4 * ROWS, 2))
    live = set(DeltaTable(path).files()["path"].to_pylist())
    assert live <= {str(file.relative_to(path)) for file in Path(path).rglob("*.parquet")}


def test_files_that_change_again_and_again_are_left(path: str, caplog: pytest.LogCaptureFixture) -> None:
    make(path, properties=VECTORS)
    numbers = iter(range(40))

    def delete_another() -> None:
        deleted_id = next(numbers)
        delete(path, lambda number: number == deleted_id)

    before = set(Path(path).rglob("*.parquet"))
    assert ordered(path, "a", writers=meanwhile(delete_another, times=3)).bins == 0
    assert ids(path) == list(range(3, 4 * ROWS)) and "again and again" in caplog.text
    assert set(Path(path).rglob("*.parquet")) == before


# ---------------------------------------------------------------- clustering


def test_clustered_rows_are_near_and_marked(path: str) -> None:
    clustered(path, "a", "b")
    outcome = ordered(path)
    assert (outcome.bins, len(outcome.removed), len(outcome.added)) == (1, 4, 4)
    assert ids(path) == list(range(4 * ROWS)) and widths(path, "a") < 0.7 and widths(path, "b") < 0.7
    adds = newest_actions(path, "add")
    assert {add["clusteringProvider"] for add in adds} == {"liquid"}
    assert len({tag["ZCUBE_ID"] for tag in tags(path)}) == 1
    assert {(tag["ZCUBE_ZORDER_BY"], tag["ZCUBE_ZORDER_CURVE"]) for tag in tags(path)} == {('["a","b"]', "hilbert")}
    (info,) = newest_actions(path, "commitInfo")
    assert info["operationParameters"]["clusterBy"] == '["a","b"]'
    stats = outcome.metrics()["clusteringStats"]
    assert (stats["inputOtherFiles"]["numFiles"], stats["inputNumZCubes"], stats["numOutputZCubes"]) == (4, 0, 1)


def test_clustering_continues_small_cubes_and_keeps_large_ones(path: str) -> None:
    clustered(path, "a", "b")
    size = sum(DeltaTable(path).files()["size"].to_pylist())
    assert ordered(path).bins == 1
    assert ordered(path).bins == 0, "one cube, and nothing new"
    write_delta(path, rows(4), mode="append")
    outcome = ordered(path, min_cube_bytes=size // 2, target_cube_bytes=size)
    assert (len(outcome.removed), outcome.clustering["inputNumZCubes"] if outcome.clustering else None) == (1, 1)
    write_delta(path, rows(5), mode="append")
    outcome = ordered(path, min_cube_bytes=size // 2, target_cube_bytes=size)
    assert len(outcome.removed) == 1 + len({*tags_of_small(path)}), "the new file, and the small cube"
    assert ids(path) == list(range(6 * ROWS))


def tags_of_small(path: str) -> list[str]:
    return [remove["path"] for remove in newest_actions(path, "remove") if "tags" in remove]


def test_full_takes_files_that_are_clustered_by_other_columns(path: str) -> None:
    clustered(path, "a")
    ordered(path)
    recluster(path, ["b"])
    assert ordered(path).bins == 0, "what was clustered by other columns stays"
    outcome = ordered(path, full=True)
    assert outcome.bins == 1 and widths(path, "b") < 0.3
    assert {tag["ZCUBE_ZORDER_BY"] for tag in tags(path)} == {'["b"]'}
    assert ordered(path, full=True).bins == 0


def recluster(path: str, columns: list[str]) -> None:
    """As ALTER TABLE ... CLUSTER BY of another engine."""
    text = orjson.dumps({"clusteringColumns": [[name] for name in columns], "domainName": "delta.clustering"}).decode()
    transaction = Transaction(Snapshot.load(LocalStore(path)))
    transaction.set_domain(DomainMetadata("delta.clustering", text))
    transaction.commit("CLUSTER BY", {})


def test_files_of_another_clustering_stay(path: str) -> None:
    clustered(path, "a", files=2)
    log = Path(path) / "_delta_log" / f"{1:020}.json"
    log.write_bytes(log.read_bytes().replace(b'"dataChange":true', b'"dataChange":true,"clusteringProvider":"other"'))
    (Path(path) / "_delta_log" / f"{1:020}.crc").unlink(missing_ok=True)
    assert len(ordered(path).removed) == 1


def test_clustering_column_beyond_the_default_has_statistics(path: str) -> None:
    clustered(path, "b", files=0)
    set_properties(LocalStore(path), {"delta.dataSkippingNumIndexedCols": "1"})
    for number in range(4):
        write_delta(path, rows(number), mode="append")
    ordered(path)
    assert widths(path, "b") < 0.3


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"z_order": ("a",)}, "DELTA_CLUSTERING_WITH_ZORDER_BY"),
        ({"predicate": "a = 1"}, "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
    ],
)
def test_clustered_table_refuses(path: str, options: dict[str, Any], condition: str) -> None:
    clustered(path, "a", files=1)
    with pytest.raises(UnsupportedOperationError, match="Nothing was changed") as raised:
        ordered(path, **options)
    assert raised.value.error_class == condition


def test_full_of_a_table_without_clustering(path: str) -> None:
    make(path, files=1)
    with pytest.raises(UnsupportedOperationError) as raised:
        ordered(path, full=True)
    assert raised.value.error_class == "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"


def test_clustering_column_that_is_gone(path: str) -> None:
    clustered(path, "a")
    recluster(path, ["nosuch"])
    with pytest.raises(SchemaMismatchError, match="nosuch"):
        ordered(path)


# ---------------------------------------------------------------- delta_py.DeltaTable


def test_public_methods(path: str, tmp_path: Path) -> None:
    make(path)
    table = DeltaTable(path)
    assert table.optimize.z_order(["a", "b"])["zOrderStats"]["numOutputCubes"] == 1
    with pytest.raises(InvalidOptionError, match="columns"):
        table.optimize.z_order([])
    other = str(tmp_path / "clustered")
    clustered(other, "a")
    assert DeltaTable(other).optimize.cluster()["clusteringStats"]["numOutputZCubes"] == 1
    assert DeltaTable(other).optimize.compact()["numBins"] == 0


def test_numbers_are_those_of_the_reference_s_tests(tmp_path: Path) -> None:
    """One file per partition, whether of all partitions or of one; predicates in the history as it prints them."""
    rows = pa.table({"value": range(100), "col1": [n % 7 for n in range(100)], "p": [n % 10 for n in range(100)]})
    for predicate, partitions in ((None, 10), ("p = 2", 1)):
        path = str(tmp_path / str(partitions))
        for part in range(4):
            write_delta(path, rows.slice(25 * part, 25), mode="append", partition_by=["p"])
        before = DeltaTable(path).scan(filter=predicate).files.num_rows
        metrics = DeltaTable(path).optimize.z_order(["value", "col1"], predicate)
        assert (metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (partitions, before)
        assert (metrics["totalConsideredFiles"], metrics["totalFilesSkipped"]) == (before, 0)
        assert (metrics["zOrderStats"]["strategyName"], metrics["zOrderStats"]["numOutputCubes"]) == ("all", partitions)
        parameters = dict(DeltaTable(path).history(1)["operationParameters"][0].as_py())
        assert parameters["predicate"] == ("[]" if predicate is None else '["(p = 2)"]')
        with pytest.raises(InvalidOptionError, match="p is a partition column"):
            DeltaTable(path).optimize.z_order(["p"], "p = 1")
    with pytest.raises(InvalidOptionError, match=r"non-partition column 'col1'.*: \[p\]"):
        DeltaTable(path).optimize.compact("col1 = 1")
