"""Leases: how long they last, what they contain, and what happens if a store does not write them."""

from __future__ import annotations

import json
import logging
import os
import pickle
import time
from pathlib import Path

import pytest

import delta_py.checkpoint.leases as leases_module
from delta_py.checkpoint.leases import MOST_SECONDS, HeldLease, Lease, Leases, delete_expired
from delta_py.errors import InvalidOptionError, StorageError
from delta_py.protocol.paths import LEASE_DIRECTORY
from delta_py.storage.local import LocalStore

HOUR = 3_600


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases of 3 seconds are renewed every tenth of a second."""
    monkeypatch.setattr(leases_module, "_RENEWALS", 30)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def versions(store: LocalStore, in_seconds: float = 0) -> list[int]:
    return sorted(Leases.read(store, now_ms() + int(in_seconds * 1000)).live.values())


def files(store: LocalStore) -> list[Path]:
    return sorted((Path(store.root) / LEASE_DIRECTORY).glob("*"))


def until(condition: object, seconds: float = 10.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


def test_lease_holds_until_it_is_released(store: LocalStore) -> None:
    assert (versions(store), Leases.read(store, now_ms()).version) == ([], None)
    with HeldLease(Lease(store, 12)):
        with HeldLease(Lease(store, 7)):
            assert versions(store) == [7, 12]
            assert Leases.read(store, now_ms()).version == 7
        assert versions(store) == [12]
        (file,) = files(store)
        text = json.loads(file.read_text())
        assert (text["version"], text["expiresAt"] - text["renewedAt"]) == (12, HOUR * 1000)
    assert files(store) == []


def test_lease_without_renewal_expires_and_its_file_is_deleted(store: LocalStore) -> None:
    Lease(store, 3, 60).put()
    assert versions(store, 59) == [3]
    leases = Leases.read(store, now_ms() + 61_000)
    assert (leases.live, len(leases.expired)) == ({}, 1)
    delete_expired(store, leases, now_ms() + 61_000)
    assert files(store) == []


def test_lease_renewed_after_its_expiry_is_not_deleted(store: LocalStore) -> None:
    lease = Lease(store, 3, 60)
    for path in (lease.path, Lease(store, 4, 60).path):
        store.put(path, b"")
        os.utime(Path(store.root) / path, (0, 0))
    leases = Leases.read(store, now_ms())
    assert len(leases.expired) == 2
    lease.put()
    delete_expired(store, leases, now_ms())
    assert [file.name for file in files(store)] == [Path(lease.path).name]


def test_lease_is_renewed_while_it_is_held(store: LocalStore) -> None:
    lease = HeldLease(Lease(store, 3, 3))
    (file,) = files(store)
    os.utime(file, (0, 0))
    assert versions(store) == []
    until(lambda: versions(store) == [3])
    lease.release()
    lease.release()
    time.sleep(0.3)
    assert files(store) == [], "it is not renewed any more"


def test_lease_moves_on_when_it_is_renewed_and_back_at_once(store: LocalStore) -> None:
    with HeldLease(Lease(store, 3, 3)) as lease:
        lease.move(9)
        assert versions(store) == [3], "which keeps more"
        until(lambda: versions(store) == [9])
        lease.move(5)
        assert versions(store) == [5]
    assert files(store) == []


def test_shared_lease_is_renewed_by_each_and_deleted_by_none(store: LocalStore) -> None:
    lease = pickle.loads(pickle.dumps(Lease(store, 3, 3)))
    assert lease.put()
    with HeldLease(lease, is_shared=True):
        (file,) = files(store)
        os.utime(file, (0, 0))
        until(lambda: versions(store) == [3])
    assert versions(store) == [3]


def test_task_that_begins_late_renews_at_once(store: LocalStore) -> None:
    lease = Lease(store, 3, 60, began_ms=now_ms() - 50_000)
    with HeldLease(lease, is_shared=True):
        until(lambda: versions(store) == [3])


@pytest.mark.parametrize("name", ["x", "lease", "12-600s.lease", "00000000000000000012-600s-xyz.lease", "0" * 20 + ".json"])
def test_unknown_lease_file_protects_all_versions_until_max_age(store: LocalStore, name: str) -> None:
    store.put(f"{LEASE_DIRECTORY}/{name}", b"\xff")
    assert versions(store, MOST_SECONDS - 5) == [0]
    assert versions(store, MOST_SECONDS + 5) == []


def test_file_without_what_should_be_in_it_is_as_good(store: LocalStore) -> None:
    lease = Lease(store, 4, 60)
    store.put(lease.path, b"")
    assert versions(store) == [4]


def test_longer_time_than_a_lease_can_have_does_not_count(store: LocalStore) -> None:
    store.put(f"{LEASE_DIRECTORY}/{4:020}-999999s-{'0' * 32}.lease", b"")
    assert (versions(store), versions(store, MOST_SECONDS + 5)) == ([4], [])


def test_file_in_the_making_is_none(store: LocalStore) -> None:
    store.put(f"{LEASE_DIRECTORY}/.x.tmp", b"")
    assert versions(store) == []
    assert Leases.read(store, now_ms()).expired == ()
    assert len(Leases.read(store, now_ms() + (MOST_SECONDS + 5) * 1000).expired) == 1


@pytest.mark.parametrize("seconds", [0, 2, MOST_SECONDS + 1])
def test_time_that_makes_no_sense_is_refused(store: LocalStore, seconds: int) -> None:
    with pytest.raises(InvalidOptionError, match="makes no sense"):
        Lease(store, 1, seconds)


class ReadOnly(LocalStore):
    __slots__ = ("error", "puts")

    def __init__(self, root: str, error: Exception) -> None:
        super().__init__(root)
        self.error: Exception | None = error
        self.puts = 0

    def put(self, path: str, data: bytes) -> None:
        self.puts += 1
        if self.error is not None:
            raise self.error
        super().put(path, data)

    def delete(self, path: str) -> None:
        if self.error is not None:
            raise self.error
        super().delete(path)


@pytest.mark.parametrize("error", [PermissionError(13, "no"), StorageError("refused")])
def test_reader_that_may_not_write_reads_on_with_a_warning(
    store: LocalStore, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), HeldLease(Lease(ReadOnly(store.root, error), 5)) as lease:
        lease.move(2)
    assert caplog.text.count("could not be written. Reading goes on without it") == 2
    assert "could not be deleted" not in caplog.text


def test_lease_that_could_not_be_written_is_tried_again(store: LocalStore) -> None:
    failing = ReadOnly(store.root, OSError("busy"))
    with HeldLease(Lease(failing, 5, 3)):
        assert versions(store) == []
        failing.error = None
        until(lambda: versions(store) == [5])
    assert files(store) == []


def test_lease_that_could_not_be_deleted_is_logged(store: LocalStore, caplog: pytest.LogCaptureFixture) -> None:
    failing = ReadOnly(store.root, OSError("busy"))
    failing.error = None
    lease = HeldLease(Lease(failing, 5, 60))
    failing.error = OSError("busy")
    with caplog.at_level(logging.WARNING):
        lease.release()
        delete_expired(failing, Leases.read(store, now_ms() + 61_000), now_ms() + 61_000)
    assert caplog.text.count("could not be deleted") == 2
    assert versions(store) == [5]
