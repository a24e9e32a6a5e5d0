"""The version checksum: what is read from it, and that damage has the same effect as its absence."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from delta_py.errors import CorruptTableError
from delta_py.log.checksum import VersionChecksum, damage_of, read_checksum
from delta_py.log.segment import LogFile
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from tests.support.stores.memory_store import MemoryStore

VALUE: dict[str, Any] = {
    "txnId": "t",
    "tableSizeBytes": 300,
    "numFiles": 3,
    "numMetadata": 1,
    "numProtocol": 1,
    "inCommitTimestampOpt": 17,
    "setTransactions": [{"appId": "a", "version": 1, "lastUpdated": 2}],
    "domainMetadata": [{"domain": "d", "configuration": "{}", "removed": False}],
    "metadata": {
        "id": "i",
        "schemaString": "{}",
        "partitionColumns": ["p"],
        "configuration": {},
        "format": {"provider": "parquet"},
    },
    "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
    "allFiles": [{"path": "x"}],
    "unknown": 1,
}


def parse(**changes: Any) -> VersionChecksum:
    value = {name: item for name, item in {**VALUE, **changes}.items() if item != "absent"}
    return VersionChecksum.parse("5.crc", orjson.dumps(value))


def test_checksum_is_read_whole() -> None:
    checksum = parse()
    assert checksum == VersionChecksum(
        "5.crc",
        Protocol(1, 2),
        Metadata("i", "{}", ("p",)),
        3,
        300,
        17,
        (SetTransaction("a", 1, 2),),
        (DomainMetadata("d", "{}"),),
        "t",
    )


@pytest.mark.parametrize("absent", ["absent", None])
def test_optional_fields_that_are_missing_are_unknown(absent: Any) -> None:
    checksum = parse(setTransactions=absent, domainMetadata=absent, inCommitTimestampOpt=absent, txnId=absent)
    assert (checksum.set_transactions, checksum.domain_metadata, checksum.in_commit_timestamp_ms, checksum.txn_id) == (
        None,
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": "absent"},
        {"metadata": None},
        {"metadata": []},
        {"metadata": {"id": 5}},
        {"metadata": {"id": "x", "format": {"provider": "parquet"}, "partitionColumns": [], "configuration": {}}},
        {"protocol": {"minReaderVersion": "1"}},
        {"numFiles": "absent"},
        {"numFiles": -1},
        {"numFiles": True},
        {"numFiles": "3"},
        {"tableSizeBytes": 1.5},
        {"tableSizeBytes": None},
        {"setTransactions": [5]},
        {"setTransactions": 5},
        {"setTransactions": "text"},
        {"domainMetadata": {"domain": {}}},
        {"domainMetadata": [{}]},
    ],
)
def test_damaged_field_makes_the_checksum_unusable(changes: dict[str, Any]) -> None:
    with pytest.raises(CorruptTableError):
        parse(**changes)


@pytest.mark.parametrize(
    "field",
    [
        *("numFiles", "tableSizeBytes", "inCommitTimestampOpt", "setTransactions", "domainMetadata", "metadata.id"),
        *("metadata.configuration", "metadata.partitionColumns", "metadata.format", "metadata.schemaString"),
        *("protocol.minReaderVersion", "protocol.readerFeatures"),
    ],
)
def test_deeply_nested_field_makes_the_checksum_unusable(field: str) -> None:
    outer, _, inner = field.partition(".")
    value = {**VALUE, outer: {**VALUE[outer], inner: "@"} if inner else "@"}
    with pytest.raises(CorruptTableError):
        VersionChecksum.parse("5.crc", orjson.dumps(value).replace(b'"@"', b"[" * 1000 + b"]" * 1000))


def test_empty_file_is_as_one_that_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    store.put("5.crc", b"")
    assert read_checksum(store, LogFile("5.crc", 5, 5, 0, 0)) is None
    assert caplog.text == ""
    assert damage_of(store, LogFile("5.crc", 5, 5, 0, 0)) == "it is empty"


@pytest.mark.parametrize("text", [b"{", b"[]", b"null", b"\xff\xfe"])
def test_damaged_file_is_passed_over_with_a_warning(text: bytes, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    store.put("5.crc", text)
    assert read_checksum(store, LogFile("5.crc", 5, 5, len(text), 0)) is None
    assert "5.crc is ignored" in caplog.text


def test_file_that_went_away_is_no_checksum() -> None:
    assert read_checksum(MemoryStore(), LogFile("5.crc", 5, 5, 1, 0)) is None


def test_faults_name_what_differs() -> None:
    checksum = parse()
    assert checksum.files_fault(3, 300) is None
    assert checksum.state_fault(Protocol(1, 2), Metadata("i", "{}", ("p",))) is None
    faults = [
        checksum.files_fault(4, 300),
        checksum.files_fault(3, 0),
        checksum.state_fault(Protocol(1, 3), checksum.metadata),
        checksum.state_fault(checksum.protocol, Metadata("j", "{}")),
    ]
    assert [fault and fault.message_parameters["field"] for fault in faults] == [
        "numFiles",
        "tableSizeBytes",
        "protocol",
        "metadata",
    ]


def test_file_that_is_too_large_is_no_checksum(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("PYDELTA_LOG_LIMIT_MB", "1")
    store = MemoryStore()
    store.put("x.crc", b"{}")
    assert read_checksum(store, LogFile("x.crc", 0, 0, (1 << 20) + 1, 0)) is None
    assert "it is larger than 1 MiB" in caplog.text and store.calls == [("put", "x.crc")]
