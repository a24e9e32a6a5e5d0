"""Answers of tasks: the same values on the other side, and only values."""

from __future__ import annotations

import errno
import json
import pickle
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from delta_py.definition.evolve import DefinitionChanges
from delta_py.errors import ConcurrentAppendException, CorruptTableError, DeltaError
from delta_py.log.checkpoint_content.checkpoint_files import CheckpointUnreadableError
from delta_py.protocol.actions import AddCDCFile, AddFile, DomainMetadata, Protocol, RemoveFile
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.row_changes.dml import ChosenFiles
from delta_py.scan.scan_state import ScanFile
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.write.data_files import WrittenFiles
from delta_py.write.rewrite import RemovedRows
from delta_py.write.task_changes import TaskChanges, TouchedRows
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.tasks.task_answers import Failure, from_text, to_text
from tests.support.tables import report_states
from tests.support.tables.table_builder import TableBuilder, add, stats

VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 36, 2)
ADD = AddFile(
    "a b/\ud800", {"p": None, "q": "\x00"}, 2**62, -1, stats='{"numRecords":1}', tags={"k": "v"}, deletion_vector=VECTOR
)
REMOVE = RemoveFile("a", deletion_timestamp_ms=5, partition_values={})
WRITTEN = WrittenFiles((ADD,), (REMOVE,), (AddCDCFile("c", {}, 3),), 7, 8, ("a", "c"), (("id", -(2**63)),))

ANSWERS: list[Any] = [
    None,
    True,
    -(2**63),
    0.1,
    float("inf"),
    "text\n\ud800",
    b"\x00\xff",
    (),
    [1, (2,), {"a": [None]}],
    frozenset({"x"}),
    {1: "one", (1, 2): b""},
    TaskChanges(WRITTEN, (TouchedRows(3, VECTOR, None, 2, 0),), 1, 2, ("s",), ((0, 4),)),
    RemovedRows(WRITTEN, 1, 2, 3, 4, 5, 6),
    DefinitionChanges(protocol=Protocol(3, 7, frozenset({"x"}), frozenset({"x"})), clustering=DomainMetadata("d", "{}")),
    ChosenFiles(pa.table({"path": ["x", None], "n": pa.array([1, 2], pa.int32())}), (ScanFile("p", 1, deletion_vector=VECTOR),)),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_answer_arrives_as_it_was(answer: Any) -> None:
    arrived = from_text(to_text(answer))
    assert arrived == answer and type(arrived) is type(answer)


@pytest.mark.parametrize("state", ["usual", "broken", "lost files", "hostile"])
def test_facts_of_a_report_arrive_as_they_were(state: str) -> None:
    facts = report_states.STATES[state]().facts
    arrived = from_text(to_text(facts))
    assert arrived == facts and type(arrived) is type(facts)


@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-json"])
def test_snapshot_arrives_with_its_files(tmp_path: Any, kind: str) -> None:
    store = LocalStore(str(tmp_path))
    table = TableBuilder(store)  # type: ignore[arg-type]
    table.create(add("a", stats=stats(1, 0, 0)), configuration={"delta.appendOnly": "true"})
    table.commit(add("b"), {"txn": {"appId": "x", "version": 3}})
    table.checkpoint(1, kind=kind, sidecars=1 if kind == "v2-json" else 0)
    table.checksum(1)
    table.last_checkpoint(1, numOfAddFiles=2)
    snapshot = Snapshot.load(store)
    arrived = from_text(to_text(snapshot))
    assert arrived.parts == snapshot.parts and arrived.store.root == store.root
    assert arrived.files() == snapshot.files()


def test_error_of_ours_arrives_as_itself() -> None:
    error = ConcurrentAppendException("another writer", error_class="DELTA_X", sql_state="2D521", version=3, odd=object, path="p")
    arrived = from_text(to_text(Failure(error))).error
    assert type(arrived) is ConcurrentAppendException and str(arrived) == str(error)
    assert (arrived.error_class, arrived.sql_state) == ("DELTA_X", "2D521")
    assert arrived.message_parameters == {"version": 3, "odd": "<class 'object'>", "path": "p"}


def test_delta_error_keeps_its_class_after_a_spark_style_raise() -> None:
    with pytest.raises(AnalysisException), as_spark_raises():
        raise ConcurrentAppendException("an error before")
    arrived = from_text(to_text(Failure(ConcurrentAppendException("another writer")))).error
    assert type(arrived) is ConcurrentAppendException


def test_unknown_error_class_arrives_as_its_parent_class() -> None:
    text = to_text(Failure(CheckpointUnreadableError.of("c", "cut"))).replace("CheckpointUnreadableError", "NewerError")
    assert type(from_text(text).error) is CorruptTableError


def test_error_of_the_system_arrives_with_its_number() -> None:
    arrived = from_text(to_text(Failure(FileNotFoundError(errno.ENOENT, "No such file", "x")))).error
    assert type(arrived) is FileNotFoundError and arrived.filename == "x"


def test_any_other_error_arrives_as_text() -> None:
    arrived = from_text(to_text(Failure(KeyError("name")))).error
    assert type(arrived) is RuntimeError and str(arrived) == "KeyError: 'name'"


def test_value_of_a_class_that_is_not_listed_is_not_sent() -> None:
    with pytest.raises(TypeError, match="Exploit is nothing that a task may answer"):
        to_text([Exploit()])


class Exploit:
    def __reduce__(self) -> tuple[Any, ...]:
        raise AssertionError("asked for a pickle")


HOSTILE = {
    "pickle": pickle.dumps({"a": 1}).decode("latin-1"),
    "class that is not listed": json.dumps({"object": ["Popen", {"args": ["true"]}]}),
    "fields that are not there": json.dumps({"object": ["ScanFile", {"exploit": 1}]}),
    "fields that lack": json.dumps({"object": ["ScanFile", {}]}),
    "kind that is not there": json.dumps({"eval": "1"}),
    "two kinds": json.dumps({"list": [], "tuple": []}),
    "no kind": "{}",
    "plain list": "[]",
    "enum that is not there": json.dumps({"enum": ["LogKind", "__class__"]}),
    "table that is none": json.dumps({"table": "AAAA"}),
    "error that is none": json.dumps({"failure": {"classes": ["SystemExit"], "message": "x"}}),
    "deep": '{"list": [' * 100_000,
    "nothing": "",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(DeltaError, match="The server's answer cannot be understood"):
        from_text(text)


def test_error_of_no_class_of_ours_is_no_exit() -> None:
    arrived = from_text(json.dumps({"failure": {"classes": ["SystemExit"], "text": "x"}})).error
    assert type(arrived) is RuntimeError
