"""Commits as actions and as columns; damaged lines are refused by file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from delta_py.errors import CorruptTableError, LogFileNotFoundError
from delta_py.log import commit_reader
from delta_py.log.commit_reader import FILE_SCHEMA, CommitReader, FileActions, read_actions
from delta_py.log.segment import LogFile, list_commits
from delta_py.protocol.actions import AddFile, CommitInfo, Protocol, parse_action
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import Json, TableBuilder, add, remove, vector


@pytest.fixture
def table() -> TableBuilder:
    return TableBuilder(MemoryStore())


def commit(table: TableBuilder, *actions: Json) -> LogFile:
    table.commit(*actions)
    return list_commits(table.store)[-1]


def raw(table: TableBuilder, text: bytes) -> LogFile:
    table.write(f"{0:020d}.json", text)
    return list_commits(table.store)[-1]


def columns(table: TableBuilder, file: LogFile) -> FileActions:
    (action_columns,) = CommitReader(table.store).file_actions(file)
    return action_columns


def refusal(table: TableBuilder, file: LogFile) -> CorruptTableError:
    with pytest.raises(CorruptTableError) as caught:
        list(CommitReader(table.store).file_actions(file))
    return caught.value


# ---------------------------------------------------------------- columns


def test_add_becomes_a_row_of_the_file_schema(table: TableBuilder) -> None:
    full = add(
        "d=a%20b/x%25.parquet",
        partitionValues={"d": "a b", "e": None},
        size=2**40,
        modificationTime=-5,
        deletionVector=vector(),
        baseRowId=7,
        defaultRowCommitVersion=3,
        stats='{"numRecords":1}',
        tags={"k": "v"},
        clusteringProvider="liquid",
        unknown={"x": [1]},
    )
    file_columns = columns(table, commit(table, full))
    assert file_columns.adds.schema == FILE_SCHEMA
    assert file_columns.adds.to_pylist() == [
        {
            "path": "d=a b/x%.parquet",
            "partition_values": [("d", "a b"), ("e", None)],
            "size": 2**40,
            "modification_time": -5,
            "deletion_vector": vector(),
            "base_row_id": 7,
            "default_row_commit_version": 3,
            "stats": '{"numRecords":1}',
            "path_text": "d=a%20b/x%25.parquet",
            "tags": [("k", "v")],
            "clustering_provider": "liquid",
        }
    ]
    assert file_columns.add_keys == ["d=a b/x%.parquet\0uab^-aqEH.-t@S}K{vb[*k^@4"]


@pytest.mark.parametrize("tags", [{"k": 1}, ["k"], "k", {}])
def test_tags_that_are_no_map_of_texts_hide_no_file(table: TableBuilder, tags: Any) -> None:
    file_columns = columns(table, commit(table, add("a", tags=tags, clusteringProvider=7), add("b", tags={"n": None})))
    assert file_columns.adds["tags"].to_pylist() == [[] if tags == {} else None, [("n", None)]]
    assert file_columns.adds["clustering_provider"].to_pylist() == [None, None]


def test_key_of_an_action_is_the_same_as_that_of_its_row(table: TableBuilder) -> None:
    actions = [add("a%20b"), add("b", deletionVector=vector()), add("c", deletionVector=vector(offset=None))]
    file_columns = columns(table, commit(table, *actions))
    parsed = [parse_action(json.dumps(action).encode()) for action in actions]
    keys = [action.key for action in parsed if isinstance(action, AddFile)]
    assert file_columns.add_keys == [path if vector_id is None else f"{path}\0{vector_id}" for path, vector_id in keys]


def test_line_that_is_too_long_is_taken_for_damaged(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_reader, "_PIECE_BYTES", 100_000)
    monkeypatch.setenv("PYDELTA_LOG_LIMIT_MB", "1")
    file = commit(table, add("a"), add("b", tags={"k": "x" * 900_000}))
    assert columns_of_all(table, file) == ["a", "b"]
    file = commit(table, add("c"), add("d", tags={"k": "x" * 1_200_000}))
    with pytest.raises(CorruptTableError, match=r"the line is larger than 1 MiB\. If that is intended, set PYDELTA_LOG_LIMIT_MB"):
        columns_of_all(table, file)


def columns_of_all(table: TableBuilder, file: LogFile) -> list[str]:
    return [path for piece in CommitReader(table.store).file_actions(file) for path in piece.adds["path"].to_pylist()]


def test_commit_without_files_gives_no_rows(table: TableBuilder) -> None:
    file_columns = columns(table, commit(table, table.protocol()))
    assert (file_columns.adds.num_rows, file_columns.add_keys, file_columns.remove_keys) == (0, [], [])


def test_removes_are_told_from_adds_by_key(table: TableBuilder) -> None:
    file_columns = columns(
        table, commit(table, remove("a", deletionVector=vector()), add("a", deletionVector=vector("new")), remove("b"))
    )
    assert file_columns.add_keys == ["a\0unew@4"]
    assert file_columns.remove_keys == ["a\0uab^-aqEH.-t@S}K{vb[*k^@4", "b"]


@pytest.mark.parametrize("actions, expected_keys", [([add("a"), remove("a")], []), ([remove("a"), add("a")], ["a"])])
def test_last_action_on_a_file_holds_within_a_commit(table: TableBuilder, actions: list[Json], expected_keys: list[str]) -> None:
    assert columns(table, commit(table, *actions)).add_keys == expected_keys


def test_add_repeated_in_a_commit_is_one_file_as_last_added(table: TableBuilder) -> None:
    file_columns = columns(table, commit(table, add("a", size=1), add("b"), add("a", size=2)))
    assert dict(zip(file_columns.add_keys, file_columns.adds["size"].to_pylist(), strict=True)) == {"a": 2, "b": 100}


def test_statistics_that_are_no_text_are_unknown(table: TableBuilder) -> None:
    file_columns = columns(table, commit(table, add("a", stats={"numRecords": 1}), add("b", stats="")))
    assert file_columns.adds["stats"].to_pylist() == [None, ""]


def test_unknown_actions_and_blank_lines_are_ignored(table: TableBuilder) -> None:
    text = b'{"futureAction":{"x":1}}\n\n  \n' + json.dumps(add("a")).encode() + b"\r\n{}\n\n"
    assert columns(table, raw(table, text)).add_keys == ["a"]


def test_last_line_without_a_newline_counts(table: TableBuilder) -> None:
    assert columns(table, raw(table, json.dumps(add("a")).encode())).add_keys == ["a"]


# ---------------------------------------------------------------- pieces


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(commit_reader, "_PIECE_BYTES", 1000)
    yield


def test_large_commit_comes_in_pieces_that_hold_every_line_once(table: TableBuilder, small_pieces: None) -> None:
    long = add("long", tags={"k": "v" * 5000})
    file = commit(table, *[add(f"{n}") for n in range(100)], long, *[add(f"{n}") for n in range(100, 200)])
    pieces = list(CommitReader(table.store).file_actions(file))
    assert len(pieces) > 10
    expected = [*(str(n) for n in range(100)), "long", *(str(n) for n in range(100, 200))]
    assert [key for piece in pieces for key in piece.add_keys] == expected


def test_damaged_line_of_a_large_commit_is_named_by_its_number(table: TableBuilder, small_pieces: None) -> None:
    lines = [json.dumps(add(f"{n}")) for n in range(100)]
    lines[76] = lines[76][:-1]
    error = refusal(table, raw(table, "\n".join(lines).encode()))
    assert error.message_parameters["line"] == 77


def test_large_commit_that_repeats_a_file_later_is_refused(table: TableBuilder, small_pieces: None) -> None:
    error = refusal(table, commit(table, *[add(f"{n}") for n in range(100)], remove("0")))
    assert "repeats or undoes" in error.message


def test_large_compaction_is_one_piece(table: TableBuilder, small_pieces: None, caplog: pytest.LogCaptureFixture) -> None:
    file = commit(table, *[add(f"{n}") for n in range(100)], remove("0"))
    compaction = LogFile(file.path, 0, 1, file.size_bytes, 0)
    (piece,) = CommitReader(table.store).file_actions(compaction)
    assert len(piece.add_keys) == 99
    assert "breaks the protocol: 1 of its actions" in caplog.text


# ---------------------------------------------------------------- actions


def test_actions_come_in_order_as_values(table: TableBuilder) -> None:
    file = commit(table, table.protocol(), add("a"))
    assert [type(action) for action in CommitReader(table.store).actions(file)] == [CommitInfo, Protocol, AddFile]
    assert [type(action) for action in read_actions(table.store, 0)] == [CommitInfo, Protocol, AddFile]


def test_actions_by_name_leave_other_lines_unparsed(table: TableBuilder) -> None:
    file = raw(table, b'{"add": garbage}\n{ "protocol" : {"minReaderVersion":1,"minWriterVersion":2}}\n')
    assert list(CommitReader(table.store).actions(file, "protocol", "metaData")) == [Protocol(1, 2)]


def test_small_files_are_read_from_the_store_once(table: TableBuilder) -> None:
    file, commits = commit(table, add("a")), CommitReader(table.store)
    assert isinstance(table.store, MemoryStore)
    table.store.calls.clear()
    for _ in range(3):
        list(commits.actions(file))
        list(commits.file_actions(file))
        commits.first_line(file)
    assert table.store.calls == [("read", file.path)]


def test_file_that_went_away_is_named(table: TableBuilder) -> None:
    with pytest.raises(LogFileNotFoundError, match=f"{7:020d}.json"):
        read_actions(table.store, 7)


# ---------------------------------------------------------------- damage


GOOD = json.dumps(add("a"))


@pytest.mark.parametrize(
    "line",
    [
        GOOD[: len(GOOD) // 2],
        GOOD[:-1],
        "\0" * 40,
        "garbage",
        "[1]",
        "null",
        '"text"',
        "{'add': 1}",
        '{"add":5}',
        '{"add":[]}',
        '{"add":{}}',
        '{"add":{"path":"\\ud800"}}',
        '{"remove":{"path":7}}',
        '{"remove":{}}',
        '{"remove":{"path":"a","deletionVector":"text"}}',
        '{"txn":{"appId":"a","version":1},"add":[]}',
        '{"txn":{"appId":"a","version":1},"remove":{"path":"a","deletionVector":[]}}',
        json.dumps(add("a%FF")),
    ],
)
def test_damaged_line_is_refused_by_file_and_line(table: TableBuilder, line: str) -> None:
    error = refusal(
        table, raw(table, f'{{"commitInfo":{{}}}}\n{GOOD.replace("a", "b", 1)}\n{line}\n'.replace('"bdd"', '"add"').encode())
    )
    assert error.message_parameters["line"] == 3
    assert f"{0:020d}.json, line 3" in error.message


@pytest.mark.parametrize(
    "fields",
    [
        {"size": -1},
        {"size": None},
        {"size": "12"},
        {"size": 1.5},
        {"size": True},
        {"size": 2**63},
        {"size": 10**30},
        {"modificationTime": None},
        {"modificationTime": 2**63},
        {"partitionValues": None},
        {"partitionValues": []},
        {"partitionValues": "text"},
        {"partitionValues": {"p": 1}},
        {"partitionValues": {"p": ["x"]}},
        {"deletionVector": 5},
        {"deletionVector": {}},
        {"deletionVector": {**vector(), "storageType": 5}},
        {"deletionVector": {**vector(), "sizeInBytes": "x"}},
        {"deletionVector": {**vector(), "offset": 2**40}},
        {"deletionVector": {**vector(), "cardinality": 2**63}},
        {"baseRowId": "x"},
        {"baseRowId": 2**63},
        {"defaultRowCommitVersion": 1.5},
    ],
)
def test_add_with_an_absurd_field_is_refused_by_line(table: TableBuilder, fields: dict[str, Any]) -> None:
    error = refusal(table, commit(table, add("good"), add("bad", **fields), add("also good")))
    assert error.message_parameters["line"] == 3, error.message


@pytest.mark.parametrize("name", ["text_map", "longs", "texts"])
@pytest.mark.parametrize("mistake", [AttributeError, TypeError, KeyError])
def test_mistake_of_ours_is_not_taken_for_damage(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch, name: str, mistake: type[Exception]
) -> None:
    def fail(values: object) -> object:
        raise mistake("a mistake")

    file = commit(table, add("good"))
    monkeypatch.setattr(commit_reader, name, fail)
    with pytest.raises(mistake, match="a mistake"):
        list(CommitReader(table.store).file_actions(file))


def test_mistake_of_ours_in_an_action_is_not_taken_for_damage(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(value: object) -> object:
        raise AttributeError("a mistake")

    file = commit(table, add("good"))
    monkeypatch.setattr(AddFile, "from_json", fail)
    with pytest.raises(AttributeError, match="a mistake"):
        list(CommitReader(table.store).actions(file))


def test_commit_of_no_bytes_has_no_actions_and_is_named_once(table: TableBuilder, caplog: pytest.LogCaptureFixture) -> None:
    file, commits = raw(table, b""), CommitReader(table.store)
    assert list(commits.actions(file)) == list(commits.actions(file, "protocol")) == list(commits.file_actions(file)) == []
    assert read_actions(table.store, 0) == []
    assert len(caplog.messages) == 2, "one of each reader"
    assert all(f"/{file.path} has 0 bytes" in message for message in caplog.messages)


def test_file_that_lost_its_bytes_since_it_was_listed_is_refused(table: TableBuilder) -> None:
    file = replace(raw(table, b""), size_bytes=10)
    assert "the file is empty" in refusal(table, file).message


def test_empty_compaction_is_refused(table: TableBuilder) -> None:
    table.write(f"{0:020d}.{1:020d}.compacted.json", b"")
    file = LogFile(f"_delta_log/{0:020d}.{1:020d}.compacted.json", 0, 1, 0, 0)
    assert "the file is empty" in refusal(table, file).message


@pytest.mark.parametrize("between", [",", ",0,"])
def test_lines_that_are_objects_only_together_are_refused(table: TableBuilder, between: str) -> None:
    """The first line is cut within a value that the second line ends; together, the second has one more object."""
    objects = between.join(["]}", "{}"])
    file = raw(table, f'{{"x":[1\n2{objects}\n'.encode())
    with pytest.raises(CorruptTableError, match="line 1: it is no JSON"):
        CommitReader(table.store).check_whole(file)


@pytest.mark.parametrize("text", [b"\n", b"  \n\n"])
def test_commit_of_blanks_is_refused(table: TableBuilder, text: bytes) -> None:
    file = raw(table, text)
    assert "the file is empty" in refusal(table, file).message
    with pytest.raises(CorruptTableError, match="empty"):
        list(CommitReader(table.store).actions(file))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (f"\ufeff{GOOD}", "line 1 column 1 "),
        (f"{GOOD},", f"line 1 column {len(GOOD) + 1} "),
        (GOOD + GOOD, f"line 1 column {len(GOOD) + 1} "),
        (f"[{GOOD}]", "no JSON object"),
        (GOOD.replace('"path": "a"', '"path": null'), "add.path is None"),
        (GOOD.replace('"path": "a", ', ""), "add.path is None"),
    ],
)
def test_line_that_lenient_parsers_accept_is_refused_with_place(table: TableBuilder, line: str, what: str) -> None:
    assert line not in (GOOD, "")
    file = raw(table, f'{{"commitInfo":{{}}}}\n{line}\n'.encode())
    with pytest.raises(CorruptTableError) as caught:
        list(CommitReader(table.store).actions(file))
    for error in (caught.value, refusal(table, file)):
        assert f"{0:020d}.json, line 2: " in error.message and what in error.message
