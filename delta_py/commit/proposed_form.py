"""A prepared commit as JSON: a transaction over tables stores it in the ledger until its final version is known.

    data = to_json(prepared)
    prepared = from_json(data, store, config)
    reads = reads_from_json(reads_to_json(reads), store, config)    # reads of the transaction that belong to no commit

Spark's worker processes know the transaction only by an option. They see its commits, and add their own, through the ledger. The
dependencies of a commit are stored as SQL, and as texts of partition values. If these cannot be parsed later, any file may hold
the rows that were read: a commit that adds a file is then a conflict.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from delta_py.commit.added_rows import ReadRows
from delta_py.commit.prepared import IsolationLevel, PreparedCommit, ReadSet, combine_matches
from delta_py.errors import CorruptTableError, DeltaError
from delta_py.expressions.parse import parse_predicate
from delta_py.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    action_to_line,
    parse_action,
)
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.partition_set import PartitionSet
from delta_py.storage.store import ObjectStore

_AT_MOST_ONE = (Protocol, Metadata)  # a commit has at most one action of each of these kinds


def to_json(prepared: PreparedCommit) -> bytes:
    """The commit as JSON, which from_json reads. Its checksum is left out; commit_group takes it from the base version."""
    assert not prepared.shared, "the rows that others took out of the same files have not been compared"
    table_actions = [action for action in (prepared.protocol, prepared.metadata) if action is not None]
    files: Iterable[Action] = (*prepared.removes, *prepared.adds, *prepared.cdc)
    actions: Iterable[Action] = (*table_actions, *prepared.domains, *prepared.transactions, *files)
    return orjson.dumps(
        {
            "version": prepared.version,
            "readVersion": prepared.read_version,
            "txnId": prepared.txn_id,
            "commitInfo": prepared.commit_info,
            "actions": [action_to_line(action).decode() for action in actions],
            "reads": _reads_to_dict(prepared.reads),
            "isolation": prepared.isolation.value,
            "inCommitTimestamps": prepared.in_commit_timestamps,
            "previousTimestamp": prepared.previous_timestamp_ms,
            "rowIdHighWaterMark": prepared.row_id_high_water_mark,
            "nextVersionOnly": prepared.next_version_only,
            "tableId": prepared.table_id,
        }
    )


def reads_to_json(reads: ReadSet) -> bytes:
    """The reads as JSON, which reads_from_json reads."""
    return orjson.dumps(_reads_to_dict(reads))


def _reads_to_dict(reads: ReadSet) -> dict[str, Any]:
    """The reads as a JSON object. _parse_reads is the reverse."""
    return {
        "predicates": reads.predicates,
        "timezones": reads.timezones,
        "partitions": [{"values": partitions.values, "timezone": partitions.timezone} for partitions in reads.partitions],
        "paths": sorted(reads.paths),
        "appIds": sorted(reads.app_ids),
        "onlyTakenRows": reads.only_deleted_rows,
        "allRows": reads.all_rows,
        "allFiles": reads.all_files,
    }


def from_json(data: bytes, store: ObjectStore, config: TableConfig) -> PreparedCommit:
    """The commit that to_json has described. store, config: of the table, in the version that was read. Raises CorruptTableError
    for data that to_json did not make."""
    with _checking_ledger_data("a commit"):
        return _parse_commit(orjson.loads(data), store, config)


def reads_from_json(data: bytes, store: ObjectStore, config: TableConfig) -> ReadSet:
    """The reads that reads_to_json has described. Otherwise as from_json."""
    with _checking_ledger_data("reads"):
        return _parse_reads(orjson.loads(data), store, config)


@contextlib.contextmanager
def _checking_ledger_data(what: str) -> Iterator[None]:
    """Raise CorruptTableError if the body cannot parse the ledger's data. what: the data, for the message."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptTableError(f"The ledger holds {what} of a transaction that cannot be read: {error!r}.") from error


def _parse_commit(value: dict[str, Any], store: ObjectStore, config: TableConfig) -> PreparedCommit:
    """The commit in a JSON object that to_json made. store, config: as in from_json."""
    actions = [parse_action(line.encode()) for line in value["actions"]]

    def actions_of(kind: type[Any]) -> tuple[Any, ...]:
        """The actions of one kind."""
        return tuple(action for action in actions if type(action) is kind)

    protocol, metadata = (next(iter(actions_of(kind)), None) for kind in _AT_MOST_ONE)
    return PreparedCommit(
        version=value["version"],
        read_version=value["readVersion"],
        txn_id=value["txnId"],
        commit_info=value["commitInfo"],
        protocol=protocol,
        metadata=metadata,
        adds=actions_of(AddFile),
        removes=actions_of(RemoveFile),
        cdc=actions_of(AddCDCFile),
        transactions=actions_of(SetTransaction),
        domains=actions_of(DomainMetadata),
        reads=_parse_reads(value["reads"], store, config),
        isolation=IsolationLevel.parse(value["isolation"]),
        in_commit_timestamps=value["inCommitTimestamps"],
        previous_timestamp_ms=value["previousTimestamp"],
        row_id_high_water_mark=value["rowIdHighWaterMark"],
        next_version_only=value["nextVersionOnly"],
        table_id=value.get("tableId", ""),
    )


def _parse_reads(value: dict[str, Any], store: ObjectStore, config: TableConfig) -> ReadSet:
    """The read set in a JSON object that _reads_to_dict made."""
    predicates = tuple(value["predicates"])
    rows = [
        _parse_read_rows(text, timezone, store, config) for text, timezone in zip(predicates, value["timezones"], strict=True)
    ]
    partition_sets = [_parse_partitions(item, config) for item in value.get("partitions", ())]
    # If partitions cannot be parsed, any row may have been read: ReadRows without a predicate.
    matches = [ReadRows.of(store, config, None, "UTC") if partitions is None else partitions for partitions in partition_sets]
    return ReadSet(
        predicates=predicates,
        may_match=combine_matches([read.may_match for read in (*rows, *matches)]),
        paths=frozenset(value["paths"]),
        app_ids=frozenset(value["appIds"]),
        only_deleted_rows=value["onlyTakenRows"],
        all_rows=value["allRows"],
        all_files=value["allFiles"],
        timezones=tuple(value["timezones"]),
        partitions=tuple(partitions for partitions in partition_sets if partitions is not None),
    )


def _parse_read_rows(text: str, timezone: str, store: ObjectStore, config: TableConfig) -> ReadRows:
    """The rows that a predicate selects; all rows if its text cannot be parsed. text: the predicate's SQL."""
    try:
        predicate = parse_predicate(text, config.schema, session_timezone=timezone)
    except DeltaError:
        predicate = None  # stands for all rows: the predicate may match any row
    return ReadRows.of(store, config, predicate, timezone)


def _parse_partitions(value: dict[str, Any], config: TableConfig) -> PartitionSet | None:
    """The partitions in a JSON object; None if their values cannot be parsed with the column types of `config`.

    config: of the version that was read. A commit that widens the type of a partition column has values of the wider type.
    """
    try:
        return PartitionSet.of(config, value["values"], value["timezone"])
    except DeltaError:
        return None
