"""Reads that compare pages with their checksums: a flipped bit is an error that names the file, or changes no row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import DataFileError
from delta_py.parquet.file_reader import read_files
from delta_py.scan.planning import Scan
from delta_py.transactions import DeltaTransaction
from delta_py.types.schema import LONG, STRING
from tests.support.tables.data_files import column, read_table, scan_state, write_file
from tests.support.tables.flipped_bits import chunk_places, flipped

_COUNT = 12
ROWS = pa.table(
    {
        "id": pa.array(range(_COUNT), pa.int64()),
        "name": [f"name{number % 5}" for number in range(_COUNT)],
        "list": pa.array([[number, number + 1] for number in range(_COUNT)], pa.list_(pa.int64())),
    }
)


def make(path: str, *, pages: str = "1.0.0", compression: str = "zstd") -> Path:
    """A table of one file; returns the file."""
    properties = {"delta.parquet.format.version": pages, "delta.enableChangeDataFeed": "true"}
    write_delta(path, ROWS, mode="error", configuration=properties, compression=compression)
    (name,) = DeltaTable(path).files()["path"].to_pylist()
    return Path(path) / name


def outcome(read: Callable[[], pa.Table], file: Path) -> str:
    try:
        rows = read()
    except DataFileError as error:
        assert file.name in str(error)
        assert error.error_class.startswith("FAILED_READ_FILE")
        return "error"
    return "same" if rows.equals(ROWS) else "wrong"


@pytest.mark.parametrize(
    ("pages", "compression", "step"), [("1.0.0", "zstd", 1), ("1.0.0", "uncompressed", 3), ("2.12.0", "snappy", 3)]
)
def test_flipped_byte_of_pages_gives_the_same_rows_or_an_error(tmp_path: Path, pages: str, compression: str, step: int) -> None:
    file = make(str(tmp_path / "t"), pages=pages, compression=compression)
    table = DeltaTable(str(tmp_path / "t"))
    scans = {verify: table.scan(verify_checksums=verify) for verify in (True, False)}
    places = chunk_places(file)[::step]
    outcomes = {verify: Counter[str]() for verify in scans}
    for number, place in enumerate(places):
        with flipped(file, place):
            outcomes[True][outcome(partial(rows_of, scans[True]), file)] += 1
            if number % 8 == 0:
                outcomes[False][outcome(partial(rows_of, scans[False]), file)] += 1
    print(f"{len(places)} flips: {outcomes[True]}; {outcomes[False].total()} of them without checksums: {outcomes[False]}")
    assert outcomes[True]["wrong"] == 0
    assert outcomes[False]["wrong"] > 0


def rows_of(scan: Scan) -> pa.Table:
    return pa.Table.from_batches(read_files(scan.state, scan.scan_files()), ROWS.schema)


ROADS: dict[str, Callable[[str, bool], pa.Table]] = {
    "to_arrow": lambda path, verify: DeltaTable(path).to_arrow(verify_checksums=verify),
    "to_batches": lambda path, verify: DeltaTable(path).to_batches(verify_checksums=verify).read_all(),
    "to_pandas": lambda path, verify: pa.Table.from_pandas(
        DeltaTable(path).to_pandas(verify_checksums=verify), ROWS.schema, preserve_index=False
    ).replace_schema_metadata(),
    "filter": lambda path, verify: DeltaTable(path).to_arrow(filter="id < 1000", verify_checksums=verify),
    "changes": lambda path, verify: (
        DeltaTable(path).changes(starting_version=0, columns=ROWS.column_names, verify_checksums=verify).read_all()
    ),
}


def wrong_place(read: Callable[[], pa.Table], file: Path) -> int:
    """A byte whose change gives wrong rows: the last one."""
    for place in reversed(chunk_places(file)):
        with flipped(file, place):
            if outcome(read, file) == "wrong":
                return place
    raise AssertionError("no flip gives wrong rows")


@pytest.mark.parametrize("road", ROADS)
def test_argument_makes_damage_an_error_on_each_road(tmp_path: Path, road: str) -> None:
    path = str(tmp_path / "t")
    file = make(path)
    unverified, verified = (partial(ROADS[road], path, verify) for verify in (False, True))
    assert outcome(verified, file) == "same"
    with flipped(file, wrong_place(unverified, file)):
        assert outcome(verified, file) == "error"
        assert outcome(unverified, file) == "wrong"


def test_transaction_reads_with_checksums_where_it_is_asked_to(tmp_path: Path) -> None:
    path, coordinator = str(tmp_path / "t"), f"sqlite://{tmp_path / 'ledger.db'}"
    write_delta(path, ROWS, mode="error", storage_options={"coordinator": coordinator})
    (file,) = Path(path).glob("*.parquet")
    with DeltaTransaction(coordinator) as transaction, flipped(file, wrong_place(partial(transaction.read, path), file)):
        assert outcome(partial(transaction.read, path), file) == "wrong"
        assert outcome(partial(transaction.read, path, verify_checksums=True), file) == "error"


def test_dictionary_pages_are_compared(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"s": ["aaaa", "bbbb"] * 50}, write_page_checksum=True, compression="none")
    place = (tmp_path / "a.parquet").read_bytes().index(b"aaaa")
    metadata = pq.read_metadata(tmp_path / "a.parquet").row_group(0).column(0)
    assert metadata.dictionary_page_offset < place < metadata.data_page_offset
    with flipped(tmp_path / "a.parquet", place), pytest.raises(DataFileError, match=r"(?s)a\.parquet.*CRC"):
        read_table(scan_state(tmp_path, [column("s", STRING)], verify_checksums=True), file)


def test_file_without_checksums_is_read_as_it_is(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": [1, 2, 3]}, write_page_checksum=False)
    assert read_table(scan_state(tmp_path, [column("x", LONG)], verify_checksums=True), file).num_rows == 3


def test_columns_that_are_not_read_are_not_compared(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    file = make(path)
    with flipped(file, wrong_place(DeltaTable(path).to_arrow, file)):  # of the last column
        assert DeltaTable(path).to_arrow(["id"], verify_checksums=True).num_rows == _COUNT


KEPT: dict[str, Callable[[DeltaTable], object]] = {
    "index": lambda table: table.index.create("id"),
    "constraint": lambda table: table.alter.add_constraint({"large": "id >= 0"}),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_a_table_keeps_is_read_with_checksums(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"id": [1000, 2001]}), mode="error", compression="uncompressed")
    (file,) = Path(path).glob("*.parquet")
    with flipped(file, file.read_bytes().index((2001).to_bytes(8, "little"))):
        assert DeltaTable(path).to_arrow()["id"].to_pylist() != [1000, 2001]
        with pytest.raises(DataFileError, match=r"(?s)\.parquet.*CRC"):
            KEPT[name](DeltaTable(path))
    KEPT[name](DeltaTable(path))
