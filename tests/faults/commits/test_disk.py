"""A disk that is full, read-only or owned by somebody else: each system call of a write fails in turn, and one write reaches a
real limit.

The calls are those of delta_py.storage.local. A refused write leaves the table as it was, and no data file.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commit.attempts import RetryPolicy
from delta_py.errors import DeltaError, TableNotFoundError
from delta_py.storage import local

ROWS = pa.table({"id": range(6), "part": [n % 2 for n in range(6)]})
FAILING = ("mkdir", "link", "replace", "open", "fsync", "write")


class _Disk:
    """Replaces the module `os` for the store, and the built-in `open`: the call with the number `fails_from` fails, and with
    `lasting` all later calls too."""

    def __init__(self, code: int, fails_from: int | None, lasting: bool) -> None:
        self._code, self._fails_from, self._lasting = code, fails_from, lasting
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        original = getattr(os, name)
        return self.checked(name, original) if name in FAILING else original

    def checked(self, name: str, action: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if name != "open" or not args[1] & os.O_NONBLOCK:  # reads use this flag
                self.check(name)
            return action(*args, **kwargs)

        return call

    def check(self, name: str) -> None:
        number, first = len(self.calls), self._fails_from
        self.calls.append(name)
        if first is not None and (number == first or (self._lasting and number > first)):
            raise OSError(self._code, os.strerror(self._code), "injected")

    def open_file(self, name: str, mode: str, **options: Any) -> Any:
        if mode != "rb":
            self.check("write")
        return open(name, mode, **options)


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[..., _Disk]:
    monkeypatch.setattr(RetryPolicy, "wait_seconds", lambda self, attempt, **_: 0.0)
    write = local._DurableFile.write

    def put(code: int = errno.ENOSPC, fails_from: int | None = None, lasting: bool = True) -> _Disk:
        disk = _Disk(code, fails_from, lasting)
        monkeypatch.setattr(local, "os", disk)
        monkeypatch.setattr(local, "open", disk.open_file, raising=False)
        monkeypatch.setattr(local._DurableFile, "write", disk.checked("write", write))
        return disk

    return put


def files(root: Path) -> set[str]:
    return {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()}


def state(root: Path) -> tuple[int, list[int]]:
    try:
        table = DeltaTable(str(root))
    except TableNotFoundError:
        return -1, []
    return table.version, sorted(table.to_arrow()["id"].to_pylist())


def create(root: Path) -> int:
    configuration = {"delta.checkpointInterval": "1", "delta.enableDeletionVectors": "true"}
    return write_delta(str(root), ROWS, mode="append", partition_by=["part"], configuration=configuration)


WORKLOADS: dict[str, Callable[[Path], int]] = {
    "create": create,
    "append": lambda root: write_delta(str(root), ROWS, mode="append"),
    "replaceWhere": lambda root: write_delta(str(root), ROWS.slice(0, 2), mode="overwrite", replace_where="id < 2"),
}
AFTER = {"create": (0, [*range(6)]), "append": (1, sorted([*range(6)] * 2)), "replaceWhere": (1, [*range(6)])}


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    ("code", "lasting"),
    [(errno.ENOSPC, True), (errno.ENOSPC, False), (errno.EACCES, True)],
    ids=["full", "full for once", "not ours"],
)
def test_write_on_a_refusing_disk_is_complete_or_absent(
    workload: str, code: int, lasting: bool, on_disk: Callable[..., _Disk], tmp_path: Path
) -> None:
    refused = done_count = 0
    for number in range(200):
        root = tmp_path / str(number)
        root.mkdir()
        on_disk()
        if workload != "create":
            create(root)
        before, was = files(root), state(root)
        disk = on_disk(code, number, lasting)
        try:
            assert WORKLOADS[workload](root) == AFTER[workload][0]
            done_count += 1
            outcome = "done"
        except DeltaError as error:
            refused += 1
            outcome = type(error).__name__
            assert "injected" in str(error) or os.strerror(code) in str(error), error
        failed = disk.calls[number] if number < len(disk.calls) else None
        on_disk()
        assert state(root) == (AFTER[workload] if outcome == "done" else was), (number, failed, outcome)
        if outcome != "done":
            assert outcome == "StorageError", (number, failed)
            assert files(root) == before, (number, failed)
            WORKLOADS[workload](root)
            assert state(root) == AFTER[workload]
        if failed is None:
            break
    assert failed is None and refused > 3 and done_count > 3, "every call was failed once, and some after the commit"


# ---------------------------------------------------------------- a real limit

LIMITED = """
import json, resource, sys
import pyarrow as pa
from delta_py import DeltaTable, write_delta
from delta_py.errors import DeltaError
path, limit = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
for ids in ([1] * 10, list(range(200))):
    data = pa.table({"id": ids, "text": [f"{n} {n * 7919 % 1000003}" for n in ids]})
    try:
        print("version", write_delta(path, data, mode="append"))
    except DeltaError as error:
        print("refused", type(error).__name__, error)
"""


def limited_write(root: Path, limit: int) -> list[str]:
    """A file may have this many bytes: the system refuses each write beyond."""
    command = [sys.executable, "-c", LIMITED, str(root), str(limit)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout.splitlines()


@pytest.mark.parametrize("limit", [0, 100, 700, 1100, 1500, 2000, 4000, 100_000])
def test_write_under_file_size_limit_is_complete_or_absent(limit: int, tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"id": [0], "text": ["first"]}), configuration={"delta.checkpointInterval": "1"})
    before = files(tmp_path)
    lines = limited_write(tmp_path, limit)
    version_lines = [line for line in lines if line.startswith("version")]
    assert len(lines) == 2 and all(line.startswith(("version", "refused StorageError")) for line in lines), lines
    assert version_lines == [f"version {n + 1}" for n in range(len(version_lines))]
    table = DeltaTable(str(tmp_path))
    assert table.version == len(version_lines)
    table.snapshot.check_integrity()
    counts = {"version": {0: 10, 1: 200}, "refused": {0: 0, 1: 0}}
    assert table.to_arrow().num_rows == 1 + sum(counts[line.split()[0]][n] for n, line in enumerate(lines))
    for file in table.files().to_pylist():
        assert (tmp_path / file["path"]).stat().st_size == file["size"]
    if not version_lines:
        assert files(tmp_path) == before
    assert len(version_lines) == {0: 0, 100_000: 2}.get(limit, len(version_lines))
    assert write_delta(str(tmp_path), pa.table({"id": [5], "text": ["last"]}), mode="append") == len(version_lines) + 1
