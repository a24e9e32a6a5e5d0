"""Read commits and compactions: JSON lines of the log -> actions, and Arrow batches of file actions.

FILE_SCHEMA is the schema of a table's file list from here to pruning. Files are read in bounded pieces of whole lines. orjson
decodes each line, and the columns are built one piece at a time. Unknown actions and fields are ignored.
checkpoint_reader.py reads checkpoints.
Protocol: Delta Log Entries; Actions; Add File and Remove File.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

import orjson
import pyarrow as pa

from delta_py.errors import CorruptTableError, LogFileNotFoundError
from delta_py.log.file_keys import path_and_key
from delta_py.log.limits import beyond_limit, limit_bytes
from delta_py.log.segment import LogFile
from delta_py.protocol.actions import Action, AddFile, parse_action
from delta_py.protocol.paths import LOG_DIRECTORY, commit_file_name
from delta_py.storage.cache.cached_objects import CachedObjects
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.types.arrow_values import array

PARTITION_VALUES_TYPE = pa.map_(pa.string(), pa.string())
DELETION_VECTOR_TYPE = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
# The table's files. path: decoded, canonical. partition_values: physical column name -> text, null for a null value.
# modification_time: ms since 1970. stats (JSON text), tags and clustering_provider: null unless requested.
FILE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("partition_values", PARTITION_VALUES_TYPE),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("deletion_vector", DELETION_VECTOR_TYPE),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("stats", pa.string()),
        ("path_text", pa.string()),  # as the log spells it
        ("tags", PARTITION_VALUES_TYPE),
        ("clustering_provider", pa.string()),
    ]
)
# Columns that only a commit that names the file again needs. A scan does not need them.
ONLY_FOR_COMMITS = frozenset({"stats", "path_text", "tags", "clustering_provider"})

_log = logging.getLogger("delta_py")

_PIECE_BYTES = 8 * 1024 * 1024  # a larger file is read in pieces of about this size
_FILES_AHEAD = 16  # files of a remote store that are read before the caller needs them
_REMEMBERED_FILE_BYTES = 1024 * 1024  # larger files are not kept in memory
_REMEMBERED_BYTES = 32 * 1024 * 1024  # for all files in memory together
_END_BYTES = 64 * 1024  # how much of the end of a large commit is read to check its last line
_MARK = uuid.uuid4().hex  # separates lines that are decoded at once: no log contains it, so two lines cannot form one value
_LINE_SEPARATOR = b"," + orjson.dumps(_MARK) + b","  # the mark as an element of a JSON list


@dataclass(frozen=True, slots=True)
class FileActions:
    """The add and remove actions of one piece of a commit, reconciled within the piece.

    adds: FILE_SCHEMA, with stats as in the log. add_keys: aligned with adds. remove_keys: keys of removes that no later action of
    the piece undoes. A key identifies a logical file: its path and its deletion vector (file_keys.py).
    """

    adds: pa.RecordBatch
    add_keys: list[str]
    remove_keys: list[str]


@dataclass(frozen=True, slots=True)
class FileRows:
    """The add and remove actions of one piece of a commit, reconciled within the piece, with all their fields as JSON objects.

    add_keys, remove_keys: the file keys (file_keys.py) of adds and removes, in the same order.
    """

    adds: list[dict[str, Any]]
    add_keys: list[str]
    removes: list[dict[str, Any]]
    remove_keys: list[str]


class CommitReader:
    """Reads JSON files of the log, and keeps small ones in memory, because building a state takes more than one pass.

    uses_cache: files of a remote store may come from the cache directory. It must be False for code that decides which log files
    may be deleted, or that writes files on which others rely: such code must read the store itself. Threads must not share a
    reader.
    """

    __slots__ = ("_checked_paths", "_content_by_path", "_remembered_bytes", "_started_reads", "_warned", "objects")

    def __init__(self, store: ObjectStore, *, uses_cache: bool = True) -> None:
        self.objects = CachedObjects.of(store) if uses_cache else CachedObjects(store)
        self._content_by_path: dict[str, bytes] = {}  # path -> content
        self._remembered_bytes = 0
        self._warned: set[str] = set()  # each file is warned of once, although a state takes more than one pass
        self._checked_paths: set[str] = set()  # paths of files that were read to the end, so a compaction's lines are all valid
        self._started_reads: dict[str, Future[bytes]] = {}  # path -> the read that `with_read_ahead` has started

    def with_read_ahead(self, files: Iterable[LogFile]) -> Iterator[LogFile]:
        """Yield the same files. If the store is remote, threads already read the next files, because each file costs a round
        trip. The reader's other methods then use the content that the threads have read."""
        if not self.objects.store.is_remote:
            yield from files
            return
        waiting: deque[LogFile] = deque()
        pool = ThreadPoolExecutor(_FILES_AHEAD, "delta_py-log")
        try:
            for file in files:
                # Larger files are streamed. A size of 0 means an empty file, or an unknown size.
                if file.path not in self._content_by_path and 0 < file.size_bytes <= _PIECE_BYTES:
                    self._started_reads[file.path] = pool.submit(self.objects.read, file.info)
                waiting.append(file)
                if len(waiting) > _FILES_AHEAD:  # so that _FILES_AHEAD reads are started before the caller gets the file
                    yield waiting.popleft()
            yield from waiting
        finally:
            self._started_reads.clear()
            pool.shutdown(wait=False, cancel_futures=True)

    def actions(self, file: LogFile, *names: str) -> Iterator[Action]:
        """The actions in order. With names, only actions of these kinds (as in the log: `metaData`), which is cheap.

        Raises CorruptTableError with file and line, and LogFileNotFoundError if the file is deleted.
        """
        needles = [f'"{name}"'.encode() for name in names]  # only lines that contain one of them are parsed
        for first, lines in self.pieces(file):
            for number, line in enumerate(lines, first):
                if not needles or any(needle in line for needle in needles):
                    action = _parse(file, number, line)
                    if action is not None:
                        yield action

    def file_actions(self, file: LogFile) -> Iterator[FileActions]:
        """The adds and removes, piece by piece; a compaction in one piece. Raises as `actions`.

        A commit with two actions for one logical file breaks the protocol, because the protocol gives its actions no order. The
        last action counts, as in delta-spark. If the commit is so large that the first action was already yielded, it is
        refused.
        """
        for actions in self._reconciled_pieces(file, keep_removes=False):
            yield actions.columns()

    def file_rows(self, file: LogFile) -> Iterator[FileRows]:
        """The adds and removes with all their fields. Otherwise as `file_actions`."""
        for actions in self._reconciled_pieces(file, keep_removes=True):
            yield actions.rows()

    def _reconciled_pieces(self, file: LogFile, *, keep_removes: bool) -> Iterator[_FileActionLines]:
        """The file actions of each piece of a commit; a compaction is one piece. keep_removes: collect the complete remove
        actions, not only their keys.

        A compaction that names a file twice gives a warning. A commit that names a file in two of its pieces raises
        CorruptTableError, because the caller already has the first of the two actions.
        """
        earlier_keys: set[str] = set()  # the keys in earlier pieces of a large commit
        actions = _FileActionLines(file, keep_removes)
        is_compaction = file.end_version > file.version
        for first, lines in self.pieces(file):
            if not is_compaction:
                actions = _FileActionLines(file, keep_removes)
            for number, line in enumerate(lines, first):
                actions.add_line(number, line)
            if is_compaction:
                continue
            if not earlier_keys.isdisjoint(actions.keys):
                raise corrupt_line(
                    file, first, "from this line on, an action repeats or undoes an earlier action on the same file."
                )
            if file.size_bytes > _PIECE_BYTES:  # a smaller file has only one piece
                earlier_keys |= actions.keys
            yield actions
        if is_compaction:
            if actions.repeat_count:
                _log.warning(
                    "%s breaks the protocol: %d of its actions name a file that it names before; the last action counts",
                    file.path,
                    actions.repeat_count,
                )
            yield actions

    def first_line(self, file: LogFile) -> bytes:
        """The first line, or b"" for an empty file. Reads only the first piece of a large file."""
        if file.size_bytes <= _PIECE_BYTES:
            return self._read(file).partition(b"\n")[0]
        for _, lines in self.pieces(file):
            return lines[0]
        return b""

    def check_whole(self, file: LogFile, *, each_line: bool = False) -> None:
        """Check a commit that perhaps nobody has read yet: each of its lines must be a JSON object.

        Unless each_line, only the last line of a large commit is checked, because an interrupted copy or a power failure cuts off
        the end. The last line needs no line break.
        A file that is still in memory is not read again. Otherwise the check takes one request; only a large commit with a very
        long last line is read as a whole. A commit of 0 bytes passes, as in `pieces`.
        Raises CorruptTableError, LogFileNotFoundError.
        """
        if each_line or file.size_bytes <= _REMEMBERED_FILE_BYTES:
            for first, lines in self.pieces(file):
                _check_objects(file, first, lines)
            return
        fault = _fault_of_object(self._last_line(file))
        if fault is not None:
            raise CorruptTableError(f"{file.path}, last line: {fault} Restore the file from a backup.", path=file.path)

    def _last_line(self, file: LogFile) -> bytes:
        """The last line that is not blank, in a file of more than _END_BYTES. Reads only the end of the file, unless the line is
        longer than that. Raises CorruptTableError if the file is shorter than its listing says."""
        start = file.size_bytes - _END_BYTES
        end = _read_existing(file, lambda info: self.objects.store.read_range(info.path, start, _END_BYTES))
        if len(end) < _END_BYTES:
            fault = f"{file.path} has fewer than the {file.size_bytes} bytes that were listed."
            raise CorruptTableError(f"{fault} Restore the file from a backup.", path=file.path)
        _, line_break, line = end.rstrip().rpartition(b"\n")
        if not line_break:  # the line is longer than the bytes that were read: take it from the last piece of the whole file
            for _, lines in self.pieces(file):
                line = b"\n".join(lines).rstrip().rpartition(b"\n")[2]
        return line

    def pieces(self, file: LogFile) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the file in pieces of whole lines, as (1-based number of the piece's first line, lines). A commit of 0 bytes has
        no pieces.

        A power failure of the writer, or a store that lost a file's bytes, can leave such a commit. As in delta-spark, it is a
        version without actions, and a warning names the file: its content is lost, and a reader cannot restore it. Any other file
        without lines raises CorruptTableError. A compaction with a line that is not a JSON object raises it too: a reader that
        needs only a few of its actions must not trust it while another reader uses the commits instead.
        """
        # unchecked: the file is a compaction whose lines were not all parsed before.
        empty, unchecked = True, file.end_version > file.version and file.path not in self._checked_paths
        for piece in _split(1, self._read(file)) if file.size_bytes <= _PIECE_BYTES else self._stream(file):
            empty = False
            if unchecked:
                _check_objects(file, *piece)
            yield piece
        if not empty:
            self._checked_paths.add(file.path)
            return
        if file.end_version > file.version or file.size_bytes or self._read(file):
            raise corrupt_line(file, 1, "the file is empty.")
        self._warn_of_empty(file)

    def _warn_of_empty(self, file: LogFile) -> None:
        """Warn of a commit of 0 bytes, once for each file."""
        if file.path not in self._warned:
            self._warned.add(file.path)
            _log.warning(
                "%s has 0 bytes: version %d is read as a version without actions. What it committed is lost; restore the file if "
                "there is a copy of it",
                self.objects.store.root + "/" + file.path,
                file.version,
            )

    def _read(self, file: LogFile) -> bytes:
        """The whole file: from memory, from the read that `with_read_ahead` has started, or from the store."""
        data = self._content_by_path.get(file.path)
        if data is None:
            started_read = self._started_reads.pop(file.path, None)
            data = _read_existing(file, self.objects.read if started_read is None else lambda _: started_read.result())
            if len(data) <= _REMEMBERED_FILE_BYTES and self._remembered_bytes + len(data) <= _REMEMBERED_BYTES:
                self._content_by_path[file.path] = data
                self._remembered_bytes += len(data)
        return data

    def _stream(self, file: LogFile) -> Iterator[tuple[int, list[bytes]]]:
        """The pieces of a large file, in the form of `pieces`. A line that continues in the next chunk becomes part of the next
        piece. Raises CorruptTableError if such a line is longer than limit_bytes()."""
        number, partial_line, limit = 1, b"", limit_bytes()
        with _read_existing(file, self.objects.open_input) as source:
            while chunk := source.read(_PIECE_BYTES):
                head, newline, tail = chunk.rpartition(b"\n")
                if not newline:  # the whole chunk belongs to one line
                    partial_line += tail
                    if len(partial_line) > limit:
                        raise corrupt_line(file, number, f"{beyond_limit('the line')}.")
                    continue
                piece = partial_line + head
                yield from _split(number, piece)
                number += piece.count(b"\n") + 1  # + 1: the line break after the piece, which is not part of it
                partial_line = tail
        yield from _split(number, partial_line)


def read_actions(store: ObjectStore, version: int) -> list[Action]:
    """All actions of one commit, in order. Raises CorruptTableError, LogFileNotFoundError."""
    path = f"{LOG_DIRECTORY}/{commit_file_name(version)}"
    # The zeros: the file was not listed, so its size and time are unknown.
    return list(CommitReader(store).actions(LogFile(path, version, version, 0, 0)))


T = TypeVar("T")


def _read_existing(file: LogFile, read: Callable[[ObjectInfo], T]) -> T:
    """The result of `read` for the file. Raises LogFileNotFoundError if the file does not exist."""
    try:
        return read(file.info)
    except FileNotFoundError as error:
        raise LogFileNotFoundError(
            f"{file.path} was listed but does not exist any more. Log cleanup has deleted it since, or somebody deleted it by "
            "hand: read a newer version.",
            path=file.path,
            version=file.version,
        ) from error


def _split(first: int, data: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the data as one piece: (number of its first line, lines). Yields nothing if all lines are blank. first: the number of
    the first line in the file."""
    lines = data.split(b"\n")
    if any(line.strip() for line in lines):
        yield first, lines


def _check_objects(file: LogFile, first: int, lines: list[bytes]) -> None:
    """Raises CorruptTableError if a line that is not blank is not a JSON object.

    All lines are decoded at once, because that is faster: as the elements of one JSON list, with _MARK between two lines. If that
    fails, each line is decoded separately, to name the damaged one.
    """
    texts = [line for line in lines if line.strip()]
    try:
        values = orjson.loads(b"[" + _LINE_SEPARATOR.join(texts) + b"]")
        # The lines are the values at even positions. The marks must be at the odd ones: otherwise a line held several values.
        if all(type(value) is dict for value in values[::2]) and values[1::2] == [_MARK] * (len(texts) - 1):
            return
    except orjson.JSONDecodeError:
        pass
    for number, line in enumerate(lines, first):  # find the damaged line
        if (fault := _fault_of_object(line)) is not None:
            raise corrupt_line(file, number, fault)


def _fault_of_object(line: bytes) -> str | None:
    """Why a line is not valid; None if it is blank or a JSON object."""
    try:
        value = orjson.loads(line) if line.strip() else {}
    except orjson.JSONDecodeError as error:
        return f"it is no JSON ({error})."
    return None if isinstance(value, dict) else "it is no JSON object."


def _parse(file: LogFile, number: int, line: bytes) -> Action | None:
    """The action of a line; None if the line is blank or its action is unknown. Raises CorruptTableError with the line number."""
    if not line.strip():
        return None
    try:
        return parse_action(line)
    except CorruptTableError as error:
        raise corrupt_line(file, number, error.message) from error


def corrupt_line(file: LogFile, number: int, fault: str) -> CorruptTableError:
    """The error for a damaged line. number: of the line, from 1. fault: a sentence that says what is wrong with the line."""
    return CorruptTableError(
        f"{file.path}, line {number}: {fault} Restore the file from a backup, or read a version before {file.version}.",
        path=file.path,
        line=number,
    )


def changes_rows(body: Mapping[str, Any]) -> bool:
    """Whether an add or remove changes the table's rows, and does not only rearrange them (dataChange). Raises KeyError and
    TypeError if the action has no valid dataChange."""
    data_change = body["dataChange"]
    if type(data_change) is not bool:
        raise TypeError("dataChange is neither true nor false")
    return data_change


# ---------------------------------------------------------------- file actions as columns


class _FileActionLines:
    """Collects the adds and removes of one piece of a log file. Of several actions on one file key, only the last counts.

    keep_removes: keep the complete remove actions, which `rows` returns. `columns` needs only their keys.
    """

    def __init__(self, file: LogFile, keep_removes: bool) -> None:
        self._file, self._keep_removes = file, keep_removes
        self._removes: dict[str, dict[str, Any]] = {}
        self._adds: list[dict[str, Any]] = []
        self._line_numbers: list[int] = []  # the line number of each add, for errors
        self._paths: list[str] = []  # the decoded path of each add
        self._last_index: dict[str, int] = {}  # key -> index into _adds, or -1 for a remove
        self._action_count = 0

    @property
    def keys(self) -> Set[str]:
        return self._last_index.keys()

    @property
    def repeat_count(self) -> int:
        """The number of actions on a logical file that already had an action."""
        return self._action_count - len(self._last_index)

    def add_line(self, number: int, line: bytes) -> None:
        """Add the line's add or remove; any other line is ignored. Raises CorruptTableError if the line is damaged."""
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if line.strip():
                raise self._line_error(number, line, str(error)) from error
            return
        if type(value) is not dict:
            raise self._line_error(number, line, "it is no JSON object.")
        add = value.get("add")
        body = value.get("remove") if add is None else add
        if body is None:
            return
        try:
            path, key = path_and_key(body)
        except CorruptTableError as error:
            raise self._line_error(number, line, error.message) from error
        self._action_count += 1
        if add is None:
            self._last_index[key] = -1
            if self._keep_removes:
                self._removes[key] = body
            return
        self._last_index[key] = len(self._adds)
        self._adds.append(add)
        self._line_numbers.append(number)
        self._paths.append(path)

    def _line_error(self, number: int, line: bytes, fault: str) -> CorruptTableError:
        """The error for a line that is not valid: the error of `_parse` if that finds one, because it says more; otherwise an
        error with `fault`."""
        try:
            _parse(self._file, number, line)
        except CorruptTableError as error:
            return error
        return corrupt_line(self._file, number, fault)

    def columns(self) -> FileActions:
        """The last action of each key, as columns. Raises CorruptTableError if an add breaks the protocol."""
        last_adds = {key: index for key, index in self._last_index.items() if index >= 0}
        remove_keys = [key for key, index in self._last_index.items() if index < 0]
        return FileActions(adds=self._batch([*last_adds.values()]), add_keys=[*last_adds], remove_keys=remove_keys)

    def rows(self) -> FileRows:
        """The last action of each key, with all its fields. Raises CorruptTableError for the same adds as `columns`, so that a
        commit is either readable for all readers or for none."""
        last_adds = {key: index for key, index in self._last_index.items() if index >= 0}
        removes = {key: self._removes[key] for key, index in self._last_index.items() if index < 0}
        # Make the columns only because this checks the adds. The result is not needed.
        self._batch([*last_adds.values()])
        return FileRows(
            adds=[self._adds[index] for index in last_adds.values()],
            add_keys=[*last_adds],
            removes=[*removes.values()],
            remove_keys=[*removes],
        )

    def _batch(self, indexes: list[int]) -> pa.RecordBatch:
        """Some of the adds as FILE_SCHEMA. Raises CorruptTableError, with the line, if an add breaks the protocol."""
        try:
            return adds_batch([self._adds[index] for index in indexes], [self._paths[index] for index in indexes])
        except (pa.ArrowException, KeyError, TypeError, AttributeError, OverflowError, ValueError) as error:
            self._check_adds(error)  # raises an error that names the line
            raise  # no add breaks the protocol, so the error is a mistake of this program

    def _check_adds(self, cause: Exception) -> None:
        """Raises CorruptTableError, with the line, for the first add that breaks the protocol. cause: the error that showed that
        there may be one."""
        for number, add in zip(self._line_numbers, self._adds, strict=True):
            try:
                AddFile.from_json(add)
            except CorruptTableError as error:
                raise corrupt_line(self._file, number, error.message) from cause


def adds_batch(adds: list[dict[str, Any]], paths: list[str]) -> pa.RecordBatch:
    """Convert add objects to FILE_SCHEMA. paths: the decoded path of each add.

    Raises the errors of Arrow and of Python for values of the wrong type.
    """
    sizes, times = longs([add["size"] for add in adds]), longs([add["modificationTime"] for add in adds])
    if sizes.null_count or times.null_count or any(add["size"] < 0 for add in adds):
        raise ValueError("a size or time is missing or negative")
    return pa.record_batch(
        [
            array(paths, pa.string()),
            text_map([add["partitionValues"] for add in adds]),
            sizes,
            times,
            array([add.get("deletionVector") for add in adds], DELETION_VECTOR_TYPE),
            longs([add.get("baseRowId") for add in adds]),
            longs([add.get("defaultRowCommitVersion") for add in adds]),
            texts([add.get("stats") for add in adds]),
            array([add["path"] for add in adds], pa.string()),
            _tags([add.get("tags") for add in adds]),
            texts([add.get("clusteringProvider") for add in adds]),
        ],
        schema=FILE_SCHEMA,
    )


def longs(values: list[Any]) -> pa.Array:
    """A column of integers. Raises if a value is not a 64-bit integer."""
    if not {type(value) for value in values} <= {int, type(None)}:  # Arrow would cut fractions off
        raise TypeError("a number has another type than it should")
    return array(values, pa.int64())


def texts(values: list[Any]) -> pa.Array:
    """A column of texts. A value that is not a text becomes null."""
    return array([text if isinstance(text, str) else None for text in values], pa.string())


def _tags(values: list[Any]) -> pa.Array:
    """A column of tags. A value that is not a map of texts becomes null and is no error, because no reader needs tags."""
    if all(tags is None for tags in values):
        return pa.nulls(len(values), PARTITION_VALUES_TYPE)
    return pa.array([list(tags.items()) if _is_text_map(tags) else None for tags in values], PARTITION_VALUES_TYPE)


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and {type(item) for item in value.values()} <= {str, type(None)}


def text_map(values: Sequence[dict[str, str | None]], nulls: pa.BooleanArray | None = None) -> pa.MapArray:
    """Convert dicts of text to map<string, string>. nulls: True for rows that are null instead."""
    offsets = array([0, *accumulate(len(value) for value in values)], pa.int32())
    keys = array([key for value in values for key in value], pa.string())
    items = array([item for value in values for item in value.values()], pa.string())
    return pa.MapArray.from_arrays(offsets, keys, items, mask=nulls)
