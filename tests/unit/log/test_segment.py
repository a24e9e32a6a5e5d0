"""Choosing the files of a version: hints, checkpoints, gaps, compactions, and refusals."""

from __future__ import annotations

import json
import logging
import os
import pickle
from pathlib import Path

import pytest

from delta_py.errors import (
    DeltaError,
    LogFileNotFoundError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)
from delta_py.log.last_checkpoint import canonical_json, json_checksum, read_last_checkpoint
from delta_py.log.segment import LogSegment, available_versions, list_commits, load_segment
from delta_py.protocol.paths import LogKind
from delta_py.storage.local import LocalStore
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore) -> TableBuilder:
    """Versions 0 to 5, each adding a file."""
    builder = TableBuilder(store)
    builder.create(add("0"))
    for version in range(1, 6):
        builder.commit(add(str(version)))
    return builder


def versions(segment: LogSegment) -> tuple[int | None, list[int]]:
    return segment.checkpoint and segment.checkpoint.version, [commit.version for commit in segment.commits]


# ---------------------------------------------------------------- commits and checkpoints


def test_segment_without_checkpoint_is_all_commits(table: TableBuilder, store: MemoryStore) -> None:
    segment = load_segment(store)
    assert versions(segment) == (None, [0, 1, 2, 3, 4, 5])
    assert segment.version == segment.last_commit.version == 5
    assert segment.table_root == store.root
    assert segment.commits[2].modification_time_ms == store.objects[segment.commits[2].path][1]


@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-json", "v2-parquet", "v2-classic"])
def test_segment_starts_from_the_newest_checkpoint(table: TableBuilder, store: MemoryStore, kind: str) -> None:
    table.checkpoint(1)
    table.checkpoint(3, kind=kind)
    segment = load_segment(store)
    assert versions(segment) == (3, [4, 5])
    assert segment.checkpoint is not None and len(segment.checkpoint.files) == (2 if kind == "multipart" else 1)


def test_segment_of_an_older_version_uses_no_newer_checkpoint(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(1)
    table.checkpoint(3)
    table.last_checkpoint(3)
    assert versions(load_segment(store, 2)) == (1, [2])
    assert versions(load_segment(store, 0)) == (None, [0])


def test_segment_of_a_checkpointed_version_names_its_commit(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(5)
    segment = load_segment(store)
    assert versions(segment) == (5, [])
    assert segment.last_commit.version == 5


def test_checkpoint_with_a_missing_part_is_skipped_with_warning(
    table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    table.checkpoint(2)
    names = table.checkpoint(4, kind="multipart", parts=3)
    table.delete(names[1])
    assert versions(load_segment(store)) == (2, [3, 4, 5])
    assert "version 4 has 2 of 3 parts" in caplog.text


def test_parts_of_two_checkpoints_of_one_version_are_not_mixed(table: TableBuilder, store: MemoryStore) -> None:
    table.delete(table.checkpoint(4, kind="multipart", parts=3)[0])
    table.delete(table.checkpoint(4, kind="multipart", parts=2)[0])
    assert versions(load_segment(store)) == (None, [0, 1, 2, 3, 4, 5])


def test_empty_checkpoint_file_is_passed_over(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(2)
    table.write(f"{4:020d}.checkpoint.parquet", b"")
    assert versions(load_segment(store)) == (2, [3, 4, 5])


def test_uuid_checkpoint_is_preferred_to_a_classic_one(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(4)
    table.checkpoint(4, kind="v2-json")
    checkpoint = load_segment(store).checkpoint
    assert checkpoint is not None and checkpoint.kind is LogKind.CHECKPOINT_V2


def test_unusable_checkpoint_gives_way_to_an_older_one(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(1)
    newer = table.checkpoint(4)
    table.last_checkpoint(4)
    assert versions(load_segment(store, unusable=frozenset([f"_delta_log/{newer[0]}"]))) == (1, [2, 3, 4, 5])


def test_files_that_are_no_part_of_the_log_are_ignored(table: TableBuilder, store: MemoryStore) -> None:
    for name in ("00000000000000000006.json.tmp", "foo.json", "6.json", ".00000000000000000006.json.crc", f"{2**63:020d}.json"):
        table.write(name, b"garbage")
    table.write("_staged_commits/00000000000000000006.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json", b"garbage")
    assert load_segment(store).version == 5


def test_checksum_is_the_one_of_exactly_the_version(table: TableBuilder, store: MemoryStore) -> None:
    table.checksum(4)
    assert load_segment(store).checksum is None
    segment_checksum = load_segment(store, 4).checksum
    assert segment_checksum is not None and segment_checksum.version == 4


def test_segment_pickles(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(3)
    segment = load_segment(store)
    assert pickle.loads(pickle.dumps(segment)) == segment


# ---------------------------------------------------------------- compactions


def test_compactions_stand_for_their_commits_newest_first(table: TableBuilder, store: MemoryStore) -> None:
    table.compact(1, 2)
    table.compact(3, 4)
    segment = load_segment(store)
    assert [(file.version, file.end_version) for file in segment.replay_files()] == [(5, 5), (3, 4), (1, 2), (0, 0)]
    assert [commit.version for commit in segment.commits_of(segment.compactions[1])] == [4, 3]


def test_compactions_out_of_range_or_overlapping_are_ignored(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(1)
    for start, end in ((0, 2), (2, 3), (3, 4), (4, 5)):
        table.compact(start, end)
    compactions = load_segment(store, 4).compactions
    assert [(file.version, file.end_version) for file in compactions] == [(2, 3)]


def test_compaction_of_missing_commits_fails_the_newest_version(
    table: TableBuilder, store: MemoryStore
) -> None:
    """The next commits would get the versions of the deleted ones, and be hidden by the compaction."""
    name = table.compact(2, 5)
    for version in (4, 5):
        table.delete(f"{version:020d}.json")
    error = refused(store)
    assert isinstance(error, LogFileNotFoundError)
    assert error.error_class == "DELTA_LOG_FILE_NOT_FOUND" and "Commit 4" in error.message and name in error.message
    assert versions(load_segment(store, 3)) == (None, [0, 1, 2, 3])
    table.delete(name)
    assert versions(load_segment(store)) == (None, [0, 1, 2, 3])


def test_compaction_of_concurrent_commits_causes_a_new_listing(table: TableBuilder, store: MemoryStore) -> None:
    table.compact(2, 5)
    commits = {version: store.objects.pop(f"_delta_log/{version:020d}.json") for version in (4, 5)}

    def appear(moment: str, call: str, path: str) -> None:
        if (moment, call) == ("after", "list_from"):
            store.objects.update({f"_delta_log/{version:020d}.json": commit for version, commit in commits.items()})

    store.hook = appear
    assert load_segment(store).version == 5


# ---------------------------------------------------------------- _last_checkpoint


def test_hint_shortens_the_listing(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(3)
    table.last_checkpoint(3, checksum=True)
    store.calls.clear()
    assert versions(load_segment(store)) == (3, [4, 5])
    assert [call for call in store.calls if call[0] == "list_from"] == [("list_from", "_delta_log")]


def test_hint_may_name_an_older_checkpoint_than_the_newest(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(2)
    table.checkpoint(4)
    table.last_checkpoint(2)
    assert versions(load_segment(store)) == (4, [5])


NESTED_TOO_DEEP = [b"[" * 100_000, b'{"version":' * 50_000]


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"version":-1}', b'{"version":1.5}', b'{"version":"3"}', b"\xff", b"{}", *NESTED_TOO_DEEP]
)
def test_damaged_hint_is_passed_over_with_a_warning(
    table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture, text: bytes
) -> None:
    table.checkpoint(3)
    table.write("_last_checkpoint", text)
    assert versions(load_segment(store)) == (3, [4, 5])
    assert "_last_checkpoint is damaged" in caplog.text


def test_hint_with_a_wrong_checksum_is_passed_over(
    table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    table.checkpoint(3)
    table.write("_last_checkpoint", b'{"version":1,"size":2,"checksum":"00000000000000000000000000000000"}')
    assert read_last_checkpoint(store) is None
    assert versions(load_segment(store)) == (3, [4, 5])
    assert "its checksum is wrong" in caplog.text


def test_hint_that_is_too_large_is_passed_over(table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    table.checkpoint(3)
    table.write("_last_checkpoint", b'{"version":3,"size":2,"x":"' + b"x" * (1 << 18) + b'"}')
    assert read_last_checkpoint(store) is None
    assert versions(load_segment(store)) == (3, [4, 5])
    assert "it has more than 262144 bytes" in caplog.text


def test_hint_with_a_repeated_key_is_passed_over(table: TableBuilder, store: MemoryStore) -> None:
    table.write("_last_checkpoint", b'{"version":1,"version":1}')
    assert read_last_checkpoint(store) is None


@pytest.mark.parametrize("hint", [1, 4, 9])
def test_hint_to_a_missing_checkpoint_lists_the_whole_log(
    table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture, hint: int
) -> None:
    table.last_checkpoint(hint)
    assert versions(load_segment(store)) == (None, [0, 1, 2, 3, 4, 5])
    assert f"_last_checkpoint names version {hint}" in caplog.text


def test_sound_log_is_loaded_without_a_warning(table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    table.checkpoint(3, kind="multipart")
    table.last_checkpoint(3, checksum=True, parts=2)
    load_segment(store)
    assert caplog.text == ""


def test_json_checksum_is_that_of_the_protocols_example() -> None:
    text = """{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2],
        {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}"""
    canonical = (
        '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,"k1"+"k3"+2+"k4"="v4",'
        '"k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
    )
    assert canonical_json(json.loads(text)) == canonical
    assert json_checksum(json.loads(text)) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_canonical_json_sorts_by_bytes_and_encodes_non_ascii() -> None:
    value = {"b": {"y": None, "x": "https://delta.io"}, "a": True, "é": "ü~", "c": []}
    assert canonical_json(value) == '"%C3%A9"="%C3%BC~","a"=true,"b"+"x"="https%3A%2F%2Fdelta.io","b"+"y"=null'


# ---------------------------------------------------------------- refusals


def refused(store: MemoryStore, version: int | None = None) -> DeltaError:
    with pytest.raises(DeltaError) as caught:
        load_segment(store, version)
    return caught.value


def test_gap_in_the_commits_is_refused(table: TableBuilder, store: MemoryStore) -> None:
    table.delete(f"{3:020d}.json")
    error = refused(store)
    assert isinstance(error, VersionsNotContiguousError)
    assert error.error_class == "DELTA_VERSIONS_NOT_CONTIGUOUS" and "(2, 4)" in error.message
    assert load_segment(store, 2).version == 2


def test_listing_gap_of_concurrent_commits_is_listed_again(table: TableBuilder, store: MemoryStore) -> None:
    commit = store.objects.pop(f"_delta_log/{4:020d}.json")
    listings = 0

    def appear(moment: str, call: str, path: str) -> None:
        nonlocal listings
        listings += (moment, call) == ("before", "list_from")
        if listings == 2:
            store.objects[f"_delta_log/{4:020d}.json"] = commit

    store.hook = appear
    assert versions(load_segment(store)) == (None, [0, 1, 2, 3, 4, 5])
    assert listings == 2


def test_missed_commit_with_a_checkpoint_is_listed_again(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(5)
    commit = store.objects.pop(f"_delta_log/{5:020d}.json")

    def appear(moment: str, call: str, path: str) -> None:
        if (moment, call) == ("after", "list_from"):
            store.objects[f"_delta_log/{5:020d}.json"] = commit

    store.hook = appear
    assert load_segment(store).version == 5


def test_gap_right_after_the_checkpoint_is_refused(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(2)
    table.delete(f"{3:020d}.json")
    assert isinstance(refused(store), VersionsNotContiguousError)


def test_gap_before_the_checkpoint_does_not_matter(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(3)
    table.delete(f"{1:020d}.json")
    assert versions(load_segment(store)) == (3, [4, 5])
    assert isinstance(refused(store, 2), VersionsNotContiguousError)


def test_first_commit_missing_without_a_checkpoint_is_refused(table: TableBuilder, store: MemoryStore) -> None:
    table.delete(f"{0:020d}.json")
    error = refused(store)
    assert isinstance(error, LogFileNotFoundError)
    assert error.error_class == "DELTA_TRUNCATED_TRANSACTION_LOG"


def test_commit_of_the_newest_checkpoint_missing_is_refused(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(5)
    table.delete(f"{5:020d}.json")
    error = refused(store)
    assert isinstance(error, LogFileNotFoundError)
    assert error.error_class == "DELTA_LOG_FILE_NOT_FOUND" and "Commit 5" in error.message


@pytest.mark.parametrize("version", [6, 2**62, -1])
def test_version_that_is_not_there_is_refused_with_the_range(table: TableBuilder, store: MemoryStore, version: int) -> None:
    error = refused(store, version)
    assert isinstance(error, VersionNotFoundError)
    assert "[0, 5]" in error.message
    assert error.message_parameters == {"version": version, "earliest": 0, "latest": 5}


def test_version_of_a_cleaned_log_before_checkpoint_is_refused(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(3)
    for version in range(3):
        table.delete(f"{version:020d}.json")
    error = refused(store, 2)
    assert isinstance(error, VersionNotFoundError)
    assert "[3, 5]" in error.message
    assert available_versions(store) == (3, 5)


def test_checkpoint_before_all_commits_is_no_earliest_version(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(1)
    table.checkpoint(4)
    for version in range(3):
        table.delete(f"{version:020d}.json")
    assert available_versions(store) == (4, 5)


def test_nothing_at_the_path_is_refused_as_missing(store: MemoryStore) -> None:
    error = refused(store)
    assert isinstance(error, TableNotFoundError)
    assert error.error_class == "DELTA_PATH_DOES_NOT_EXIST" and store.root in error.message


@pytest.mark.parametrize("path", ["part-0.parquet", "_delta_log/00000000000000000000.crc", "_delta_log/readme.txt"])
def test_directory_without_a_commit_is_refused_as_no_table(store: MemoryStore, path: str) -> None:
    store.put(path, b"1")
    error = refused(store)
    assert isinstance(error, TableNotFoundError)
    assert error.error_class == "DELTA_MISSING_DELTA_TABLE" and store.root in error.message


def test_log_of_nothing_but_an_incomplete_checkpoint_is_refused(table: TableBuilder, store: MemoryStore) -> None:
    names = table.checkpoint(5, kind="multipart", parts=3)
    for path in list(store.objects):
        if not path.endswith(names[0]):
            store.delete(path)
    assert refused(store).error_class == "DELTA_MISSING_PART_FILES"


def test_list_commits_gives_the_range_that_is_there(table: TableBuilder, store: MemoryStore) -> None:
    table.delete(f"{3:020d}.json")
    assert [commit.version for commit in list_commits(store, 2, 4)] == [2, 4]
    assert [commit.version for commit in list_commits(store, 4)] == [4, 5]


def refuse(store: MemoryStore, name: str) -> None:
    """Refuse all requests for paths that contain a name."""

    def hook(_: str, __: str, path: str) -> None:
        if name in path:
            raise StorageError("The store refuses this.")

    store.hook = hook


def test_store_that_refuses_all_raises_one_error_without_warning(
    table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    refuse(store, "")
    with pytest.raises(StorageError, match="refuses this"):
        load_segment(store)
    assert caplog.text == ""


def test_unreadable_hint_gives_a_warning_and_a_listing(
    table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    refuse(store, "_last_checkpoint")
    assert load_segment(store).version == 5 and read_last_checkpoint(store) is None
    assert caplog.text.count("_last_checkpoint is not read (The store refuses this.)") == 2


@pytest.mark.parametrize("odd", ["directory", "fifo"])
def test_hint_that_is_no_file_is_ignored_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture, odd: str) -> None:
    local = LocalStore(str(tmp_path))
    TableBuilder(local).commit()
    (os.mkdir if odd == "directory" else os.mkfifo)(tmp_path / "_delta_log" / "_last_checkpoint")
    assert load_segment(local).version == 0
    assert "_last_checkpoint is not read" in caplog.text
