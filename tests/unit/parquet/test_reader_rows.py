"""Which rows a read returns: deletion vectors, selections, predicates; and their positions and row ids."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from delta_py.errors import DataFileError, DeletionVectorError, ExpressionError, SchemaMismatchError
from delta_py.expressions.tree import And, Call, Column, Comparison, Expression, In, IsNull, Literal, Not
from delta_py.parquet import file_reader as reader_module
from delta_py.parquet.file_reader import read_files
from delta_py.parquet.row_selection import RowPick
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, dv_file_bytes, inline_descriptor, serialize
from delta_py.row_changes.write import write_delta
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.scan.scan_state import ColumnSource, ScanColumn, ScanFile
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import DATE, INTEGER, LONG, STRING, TIMESTAMP, StructField, StructType
from tests.support.tables.data_files import column, inline_vector, read_batches, read_rows, read_table, scan_state, write_file

X = column("x", LONG)


def compare(op: str, name: str | tuple[str, ...], value: Any) -> Expression:
    return Comparison(
        op, Column((name,) if isinstance(name, str) else name), Literal(value, STRING if isinstance(value, str) else LONG)
    )


def xs(state: Any, files: Iterable[ScanFile] | ScanFile) -> list[Any]:
    return read_table(state, files)["x"].to_pylist()


def numbered(root: Path, count: int = 1000, group: int = 100, **more: Any) -> ScanFile:
    return write_file(root, "a.parquet", {"x": np.arange(count), **more}, row_group_size=group)


class CountedReads(LocalStore):
    """Counts the bytes that are read through it."""

    __slots__ = ("read_bytes",)

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.read_bytes = 0

    def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> pa.NativeFile:
        counter, file = self, open(self._locate(path), "rb")  # noqa: SIM115

        class Counted:
            closed = False
            seek, tell, readable, seekable = file.seek, file.tell, file.readable, file.seekable
            writable = staticmethod(lambda: False)

            def read(self, size: int = -1) -> bytes:
                data = file.read(size)
                counter.read_bytes += len(data)
                return data

            def close(self) -> None:
                file.close()

        return pa.PythonFile(Counted(), mode="r")


# ---------------------------------------------------------------- deletion vectors and selections


@pytest.mark.parametrize("batch_rows", [7, 100, 65_536])
@pytest.mark.parametrize("deleted", [[0], [999], range(100), range(100, 200), range(0, 1000, 3), range(1000)])
def test_deleted_rows_are_left_out(tmp_path: Path, deleted: Iterable[int], batch_rows: int) -> None:
    file = replace(numbered(tmp_path), deletion_vector=inline_vector(deleted))
    assert xs(scan_state(tmp_path, [X], batch_rows=batch_rows), file) == sorted(set(range(1000)) - set(deleted))


@pytest.mark.parametrize("chosen", [[], [0], [999], range(150, 160), range(0, 1000, 3), range(1000)])
def test_only_selected_rows_are_read(tmp_path: Path, chosen: Iterable[int]) -> None:
    file = replace(numbered(tmp_path), selection=inline_vector(chosen))
    assert xs(scan_state(tmp_path, [X]), file) == sorted(chosen)


def test_selected_rows_that_are_deleted_are_left_out(tmp_path: Path) -> None:
    file = replace(numbered(tmp_path), selection=inline_vector([5, 6, 700]), deletion_vector=inline_vector([6, 7]))
    assert xs(scan_state(tmp_path, [X]), file) == [5, 700]


def test_deletion_vector_files_are_read_from_any_location(tmp_path: Path) -> None:
    table, elsewhere = tmp_path / "table", tmp_path / "else where"
    elsewhere.mkdir()
    file = numbered(table)
    data, (first, second) = dv_file_bytes([BitMap64([1, 2]), BitMap64([3])], UUID(int=7))
    (elsewhere / "v.bin").write_bytes(data)
    (table / str(first.path)).write_bytes(data)
    place = f"file://{elsewhere}/v.bin".replace(" ", "%20")
    absolute = replace(second, storage_type="p", path_or_inline_dv=place)
    files = [replace(file, deletion_vector=vector) for vector in (first, second, absolute)]
    read = [xs(scan_state(table, [X]), each)[:4] for each in files]
    assert read == [[0, 3, 4, 5], [0, 1, 2, 4], [0, 1, 2, 4]]


def test_missing_deletion_vector_is_an_error_naming_both_files(tmp_path: Path) -> None:
    vector = DeletionVectorDescriptor("p", f"{tmp_path}/gone.bin", 1, 10, 1)
    with pytest.raises(DeletionVectorError, match=r"gone\.bin of data file a\.parquet is missing"):
        xs(scan_state(tmp_path, [X]), replace(numbered(tmp_path), deletion_vector=vector))


def test_vector_entries_beyond_the_rows_are_ignored_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = replace(numbered(tmp_path), deletion_vector=inline_vector([3, 1000, 5_000_000_000]))
    with caplog.at_level(logging.WARNING):
        assert xs(scan_state(tmp_path, [X]), file) == [0, 1, 2, *range(4, 1000)]
    assert "a.parquet" in caplog.text and "5000000000" in caplog.text


def test_huge_vector_is_expanded_only_for_rows_of_the_file(tmp_path: Path) -> None:
    """As a complete mask, these would be 32 GB."""
    file = numbered(tmp_path)
    state = scan_state(tmp_path, [X])
    assert xs(state, replace(file, deletion_vector=inline_descriptor(BitMap64(range(10, 2**32))))) == list(range(10))
    assert xs(state, replace(file, selection=inline_descriptor(BitMap64(range(990, 2**32))))) == list(range(990, 1000))


def test_deletion_vector_of_the_wrong_cardinality_is_an_error(tmp_path: Path) -> None:
    bitmap = serialize(BitMap64([1, 2]))
    vector = replace(inline_vector([1, 2]), cardinality=3, size_in_bytes=len(bitmap))
    with pytest.raises(DeletionVectorError, match="CARDINALITY_MISMATCH"):
        xs(scan_state(tmp_path, [X]), replace(numbered(tmp_path), deletion_vector=vector))


def test_row_groups_of_which_all_rows_are_deleted_are_not_read(tmp_path: Path) -> None:
    file = numbered(tmp_path, 100_000, 10_000)
    store = CountedReads(str(tmp_path))
    kept_positions = [5, 99_999]
    vector = inline_vector(sorted(set(range(100_000)) - set(kept_positions)))
    state = scan_state(tmp_path, [X], store=store)
    table = pa.Table.from_batches(read_files(state, [replace(file, deletion_vector=vector)]))
    assert table["x"].to_pylist() == kept_positions
    assert store.read_bytes < file.size_bytes / 3


@pytest.mark.parametrize("share", [0.0, 0.005, 0.3, 0.7, 1.0])
def test_picked_rows_are_the_same_by_either_kernel(share: float) -> None:
    generator = np.random.default_rng(1)
    keep = generator.random(1000) < share
    nulls = pa.array(generator.random(1000) < 0.2)
    arrays = [
        pa.array(np.arange(1000)),
        pa.array([str(i) for i in range(1000)]),
        pa.array([None if n.as_py() else i for i, n in enumerate(nulls)], pa.int32()),
        pa.array([[i] * (i % 3) if i % 7 else None for i in range(1000)]),
        pa.array([{"a": i} if i % 5 else None for i in range(1000)]),
        pa.array(generator.random(1000) < 0.5),
        pa.nulls(1000),
    ]
    pick = RowPick.of(keep)
    assert len(pick) == keep.sum()
    for array in arrays:
        assert pick.rows_of(array).to_pylist() == [v for v, is_kept in zip(array.to_pylist(), keep, strict=True) if is_kept]


# ---------------------------------------------------------------- _metadata


def metadata(*names: str) -> ScanColumn:
    types = {"file_path": STRING, "file_name": STRING, "file_modification_time": TIMESTAMP}
    struct = StructType(tuple(StructField(name, types.get(name, LONG)) for name in names))
    field = StructField("_metadata", struct, nullable=False)
    return ScanColumn(field, field, ColumnSource.METADATA)


def test_metadata_says_where_rows_are_from(tmp_path: Path) -> None:
    file = write_file(tmp_path, "p=a b/x%é.parquet", {"x": [1]})
    columns = metadata("file_name", "file_path", "file_size", "file_modification_time")
    (row,) = read_rows(scan_state(tmp_path, [columns]), file)
    assert row["_metadata"].pop("file_modification_time").timestamp() == 1_700_000_000.123
    path = f"file:{tmp_path}/p=a%20b/x%25é.parquet"
    assert row == {"_metadata": {"file_name": "x%25é.parquet", "file_path": path, "file_size": file.size_bytes}}


def test_row_indexes_are_file_positions_whatever_is_skipped(tmp_path: Path) -> None:
    file = replace(numbered(tmp_path), deletion_vector=inline_vector([*range(100, 200), 555]))
    predicate = Not(In(Column(("x",)), tuple(Literal(v, LONG) for v in (5, 501))))
    between = And((compare(">=", "x", 300), predicate))
    for drop_rows in (True, False):
        state = scan_state(tmp_path, [metadata("row_index"), X], predicate=between, drop_rows=drop_rows, batch_rows=64)
        rows = read_rows(state, file)
        assert all(row["_metadata"]["row_index"] == row["x"] for row in rows)
        assert [row["x"] for row in rows if row["x"] >= 300 and row["x"] != 501] == [
            x for x in range(300, 1000) if x not in (501, 555)
        ]


def test_row_ids_are_materialized_or_follow_the_position(tmp_path: Path) -> None:
    table = {"x": [0, 1, 2, 3], "_row-id-col": [None, 70, None, 71], "_row-ver-col": [None, None, 9, None]}
    file = write_file(tmp_path, "a.parquet", pa.table(table), row_group_size=2)
    file = replace(file, base_row_id=1000, default_row_commit_version=3, deletion_vector=inline_vector([0]))
    state = scan_state(
        tmp_path,
        [X, metadata("row_commit_version", "row_id")],
        row_id_column="_row-id-col",
        row_commit_version_column="_row-ver-col",
    )
    assert [(row["x"], *row["_metadata"].values()) for row in read_rows(state, file)] == [(1, 3, 70), (2, 9, 1002), (3, 3, 71)]


def test_row_ids_of_files_without_row_tracking_are_null(tmp_path: Path) -> None:
    state = scan_state(tmp_path, [metadata("row_id", "row_commit_version")], row_id_column="gone")
    assert read_rows(state, numbered(tmp_path, 1)) == [{"_metadata": {"row_id": None, "row_commit_version": None}}]


# ---------------------------------------------------------------- predicates


def test_drop_rows_drops_rows_with_false_or_null_predicate(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": pa.array([1, None, 3, 4])})
    assert xs(scan_state(tmp_path, [X], predicate=compare(">", "x", 1), drop_rows=True), file) == [3, 4]
    assert xs(scan_state(tmp_path, [X], predicate=IsNull(Column(("x",))), drop_rows=True), file) == [None]


def test_row_groups_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    file = numbered(tmp_path, 100_000, 10_000)
    store = CountedReads(str(tmp_path))
    state = scan_state(tmp_path, [X], store=store, predicate=compare("=", "x", 77_777))
    rows = pa.Table.from_batches(read_files(state, [file]))["x"].to_pylist()
    assert 77_777 in rows and min(rows) >= 70_000 and max(rows) < 80_000
    assert store.read_bytes < file.size_bytes / 3


def test_mapped_partition_and_missing_columns_skip_row_groups(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"phys": pa.array([{"p": 1}, {"p": 2}])})
    logical, physical = StructType((StructField("a", LONG),)), StructType((StructField("p", LONG),))
    s = column("s", logical, physical=StructField("phys", physical))
    p = column("part", INTEGER, ColumnSource.PARTITION, physical=StructField("phys-part", INTEGER))
    file = replace(file, partition_values={"phys-part": "5"})

    def count(predicate: Expression) -> int:
        return read_table(scan_state(tmp_path, [s, p, column("gone", LONG)], predicate=predicate), file).num_rows

    assert count(compare(">", ("s", "a"), 2)) == 0
    assert count(Comparison("=", Column(("part",)), Literal(6, INTEGER))) == 0
    assert count(Comparison("=", Column(("part",)), Literal(5, INTEGER))) == 2
    assert count(compare("=", "gone", 1)) == 0
    assert count(IsNull(Column(("gone",)))) == 2


def test_filter_columns_are_read_for_the_predicate_only(tmp_path: Path) -> None:
    file = write_file(
        tmp_path, "a.parquet", pa.table({"x": [1, 2, 3], "s": pa.array([{"a": 1, "b": 9}, {"a": 2, "b": 8}, None])})
    )
    a, b = (column("s", StructType((StructField(name, LONG),))) for name in "ab")
    state = scan_state(tmp_path, [a, X], filter_columns=(b,), predicate=compare("=", ("s", "b"), 8), drop_rows=True)
    assert read_rows(state, file) == [{"s": {"a": 2}, "x": 2}]
    both = And((compare("=", ("s", "b"), 8), compare("=", ("s", "a"), 1)))
    assert read_rows(replace(state, predicate=both), file) == []


def test_predicates_over_metadata_and_constants_drop_rows(tmp_path: Path) -> None:
    file = replace(numbered(tmp_path, 20, 10), constants={"kind": ("insert", STRING)})
    columns = [X, metadata("row_index"), column("kind", STRING, ColumnSource.CONSTANT)]
    index = compare("<", ("_metadata", "row_index"), 2)
    assert [row["x"] for row in read_rows(scan_state(tmp_path, columns, predicate=index, drop_rows=True), file)] == [0, 1]
    other = compare("=", "kind", "delete")
    assert read_rows(scan_state(tmp_path, columns, predicate=other, drop_rows=True), file) == []


def test_predicate_on_unread_column_fails_only_with_drop_rows(tmp_path: Path) -> None:
    file = numbered(tmp_path, 3)
    predicate = compare("=", "nowhere", 1)
    assert xs(scan_state(tmp_path, [X], predicate=predicate), file) == [0, 1, 2]
    with pytest.raises(SchemaMismatchError, match="nowhere"):
        xs(scan_state(tmp_path, [X], predicate=predicate, drop_rows=True), file)


def test_unsupported_predicate_fails_only_with_drop_rows(tmp_path: Path) -> None:
    file = numbered(tmp_path, 3)
    predicate = Comparison("=", Call("no_such_function", (Column(("x",)),)), Literal(1, LONG))
    assert xs(scan_state(tmp_path, [X], predicate=predicate), file) == [0, 1, 2]
    with pytest.raises(ExpressionError, match="no_such_function"):
        xs(scan_state(tmp_path, [X], predicate=predicate, drop_rows=True), file)


def test_predicate_error_on_a_row_fails_only_with_drop_rows(tmp_path: Path) -> None:
    file = numbered(tmp_path, 3)
    predicate = Comparison("=", Call("%", (Literal(1, LONG), Column(("x",)))), Literal(1, LONG))
    assert xs(scan_state(tmp_path, [X], predicate=predicate), file) == [0, 1, 2]
    with pytest.raises(ExpressionError):
        xs(scan_state(tmp_path, [X], predicate=predicate, drop_rows=True), file)


def test_predicate_is_not_asked_of_deleted_rows(tmp_path: Path) -> None:
    wide = {"t": [np.random.default_rng(i).bytes(5000).hex() for i in range(3)]}  # so that the reader looks ahead
    file = replace(numbered(tmp_path, 3, **wide), deletion_vector=inline_vector([0]))
    predicate = Comparison("=", Call("%", (Literal(1, LONG), Column(("x",)))), Literal(1, LONG))
    for columns in ([X], [X, column("t", STRING)]):
        assert xs(scan_state(tmp_path, columns, predicate=predicate, drop_rows=True), file) == [2]


def test_look_ahead_skips_other_columns_of_files_without_match(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    files = []
    for number in range(6):
        keys = generator.permutation(20_000).astype(np.int32) * 6 + number
        texts = [generator.bytes(40).hex() for _ in range(20_000)]
        files.append(write_file(tmp_path, f"{number}", {"k": keys, "t": texts}))
    store = CountedReads(str(tmp_path))
    predicate = Comparison("=", Column(("k",)), Literal(603, INTEGER))
    state = scan_state(tmp_path, [column("k", INTEGER), column("t", STRING)], store=store, predicate=predicate)
    rows = pa.Table.from_batches(read_files(state, files)).to_pylist()
    assert [row["k"] for row in rows] == [603]
    assert store.read_bytes < 0.4 * sum(file.size_bytes for file in files)


def test_look_ahead_leaves_the_batches_bounded_in_bytes(tmp_path: Path) -> None:
    """The size of the predicate's narrow rows must not be used as the size of whole rows."""
    generator = np.random.default_rng(0)
    texts = [generator.bytes(5_000).hex() for _ in range(3_000)]
    files = [
        write_file(tmp_path, f"{i}", {"k": np.arange(3_000, dtype=np.int32), "t": texts}, use_dictionary=False) for i in range(2)
    ]
    predicate = Comparison(">=", Column(("k",)), Literal(0, INTEGER))
    state = scan_state(tmp_path, [column("k", INTEGER), column("t", STRING)], predicate=predicate, batch_bytes=1 << 20)
    pool = pa.default_memory_pool()
    before, largest = pool.bytes_allocated(), 0
    for batch in read_files(state, [replace(file, size_bytes=1 << 30) for file in files]):  # read through small buffers
        largest = max(largest, batch.nbytes, pool.bytes_allocated() - before)
    assert largest < 20 << 20


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_flipped_bit_is_an_error_where_rows_are_written_again(tmp_path: Path, compression: str) -> None:
    write_delta(str(tmp_path), pa.table({"x": np.arange(1000)}), mode="error", compression=compression)
    snapshot = Snapshot.load(LocalStore(str(tmp_path)))
    (path,) = tmp_path.glob("*.parquet")
    data = path.read_bytes()
    page = pq.read_metadata(path).row_group(0).column(0)
    place = (page.dictionary_page_offset or page.data_page_offset) + page.total_compressed_size - 5
    path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    scan = plan_scan(snapshot, options=ScanOptions(to_write=True))
    with pytest.raises(DataFileError, match=r"(?s)\.parquet.*CRC"):
        list(read_files(scan.state, scan.scan_files()))


def test_partitions_dates_and_strings_together(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": [1, 2, 3], "t": ["a", None, "c"]})
    file = replace(file, partition_values={"d": "2024-01-01"})
    state = scan_state(
        tmp_path,
        [column("d", DATE, ColumnSource.PARTITION), X],
        filter_columns=(column("t", STRING),),
        predicate=And((Comparison("=", Column(("t",)), Literal("c", STRING)), Not(IsNull(Column(("d",)))))),
        drop_rows=True,
    )
    assert [row["x"] for row in read_rows(state, file)] == [3]


def test_reader_asks_arrow_for_small_buffers_in_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = numbered(tmp_path)
    sizes: list[int] = []
    parquet_file = pq.ParquetFile

    def opened(source: Any, **options: Any) -> Any:
        sizes.append(options["buffer_size"])
        return parquet_file(source, **options)

    monkeypatch.setattr(reader_module.pq, "ParquetFile", opened)
    read_batches(scan_state(tmp_path, [X]), [file, replace(file, size_bytes=1 << 30)])
    assert sizes[0] == 0
    assert 0 < sizes[1] <= 1 << 20
