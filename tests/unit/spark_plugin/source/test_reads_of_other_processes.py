"""The reads of a statement in a transaction over tables count, in whichever process it was committed: over Spark Connect that is
a worker process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from delta_py import DeltaTable, write_delta
from delta_py.errors import ConcurrentAppendException, ConcurrentDeleteReadException, DeltaError
from delta_py.expressions.parse import parse_predicate
from delta_py.row_changes.dml import Dml
from delta_py.transactions import DeltaTransaction
from delta_py.write.rewrite import RemovedRows
from tests.support.stores.coordination import coordinated, create_coordinated, ledger_url, rows_of

pytestmark = pytest.mark.usefixtures("publication_at_once")

_RUN = "import pickle, sys; print(pickle.load(sys.stdin.buffer)())"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return ledger_url(tmp_path)


@pytest.fixture
def paths(tmp_path: Path, url: str) -> tuple[Path, Path]:
    for name in "ab":
        create_coordinated(tmp_path / name, url, {"id": [1, 2, 3]}, delta__enableDeletionVectors="true")
    return tmp_path / "a", tmp_path / "b"


def elsewhere(work: Callable[[], Any]) -> str:
    """The result of the work in a process that ends afterwards, as text."""
    ended = subprocess.run([sys.executable, "-c", _RUN], input=cloudpickle.dumps(work), capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode().strip()


def delete_nothing(path: Path, url: str, identity: str, condition: str) -> None:
    """A DELETE that finds no row, planned here and committed in another process."""
    dml = Dml.begin(coordinated(path, url, identity), "DELETE", time_zone="UTC")
    dml.find_candidates(parse_predicate(condition, dml.snapshot.schema))
    assert elsewhere(partial(dml.commit, {}, [], RemovedRows())).startswith("(0, ")


def append(path: Path, url: str, *ids: int) -> None:
    write_delta(str(path), pa.table({"id": pa.array(ids, pa.int64())}), mode="append", store=coordinated(path, url))


def change(paths: tuple[Path, Path], url: str, isolation: str, other_writer: Callable[[], object]) -> DeltaTransaction:
    a, b = paths
    with DeltaTransaction(url, isolation=isolation) as tx:
        tx.storage_options(str(a))
        delete_nothing(a, url, tx.identity, "id > 5")
        tx.append(str(b), pa.table({"id": [9]}))
        other_writer()
    return tx


def test_append_conflicts_with_a_read_of_another_process(paths: tuple[Path, Path], url: str) -> None:
    with pytest.raises(ConcurrentAppendException, match="id > 5"):
        change(paths, url, "serializable", lambda: append(paths[0], url, 7))
    assert rows_of(paths[1], url) == [1, 2, 3]


def test_other_rows_may_come(paths: tuple[Path, Path], url: str) -> None:
    change(paths, url, "serializable", lambda: append(paths[0], url, 4))
    assert (rows_of(paths[0], url), rows_of(paths[1], url)) == ([1, 2, 3, 4], [1, 2, 3, 9])


def test_rows_may_come_where_only_what_is_written_counts(paths: tuple[Path, Path], url: str) -> None:
    change(paths, url, "snapshot", lambda: append(paths[0], url, 7))
    assert rows_of(paths[1], url) == [1, 2, 3, 9]


def test_delete_conflicts_with_a_read_of_another_process(paths: tuple[Path, Path], url: str) -> None:
    def statement(identity: str) -> None:
        dml = Dml.begin(coordinated(paths[0], url, identity), "MERGE", time_zone="UTC")
        dml.find_candidates(parse_predicate("id > 2", dml.snapshot.schema))
        elsewhere(partial(dml.commit, {}, [], RemovedRows()))

    with pytest.raises(ConcurrentDeleteReadException), DeltaTransaction(url) as tx:
        tx.storage_options(str(paths[0]))
        statement(tx.identity)
        tx.append(str(paths[1]), pa.table({"id": [9]}))
        DeltaTable(str(paths[0]), store=coordinated(paths[0], url)).delete()


def test_reads_of_a_table_unknown_to_the_transaction_fail(paths: tuple[Path, Path], url: str) -> None:
    with pytest.raises(DeltaError, match="does not know by which path"), DeltaTransaction(url) as tx:
        delete_nothing(paths[0], url, tx.identity, "id > 5")
        tx.append(str(paths[1]), pa.table({"id": [9]}))
    assert rows_of(paths[1], url) == [1, 2, 3]
