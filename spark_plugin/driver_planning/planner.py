"""Opens tables, plans scans, reads small ones and is asked for streams where the JVM asks the driver's own Python: the other side
of DriverPlanner.java.

    apply = Planner(secret, {PLAN: planned, OPEN: opened}).apply     # bytes -> bytes, in whatever thread

Whoever may connect to this machine's ports may call what is offered to the JVM, and a request holds a pickle. So it begins with
a secret that only the JVM was given, and nothing of one is looked at before that is compared.

A request, behind the secret: a byte, and the milliseconds after which an answer is to be `later`. Then of kind

0   a planning: rows of an Arrow batch, whether binary values are bytes, whether it is for the tasks of a stream, and the pickled
    DataSource with its length before it and the scan's schema as JSON behind it. The answer is what Spark's worker would write.
1   a ticket, of an answer that was `later`; the answer is that one, or `later` again, with the ticket.
2   as JSON the options of a DataSource that is to be made, and the directory from which workers count relative paths. The answer
    is the pickled DataSource with its length before it and its columns as JSON behind it.
3   what a stream's source is asked (streams.py).
4   the nonce of a rule's request of kind 0: the answer is the rows (reads.py).
5   a write that is to be planned, 6 one to be committed (writes.py).

Before the answer is a byte: 0, 1 for `later`, 2 for the reason why there is none, 3 for the name of a file that holds it, which
the JVM deletes, 4 for the reason why the work was not begun.
Numbers are big-endian.
"""

from __future__ import annotations

import hmac
import itertools
import logging
import math
import os
import shutil
import stat
import struct
import tempfile
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import orjson
from pyspark.sql.types import StructType

from delta_py.scan.filtered_columns import counted_elsewhere
from spark_plugin.data_source import pickled_whole
from spark_plugin.driver_planning.held_log import held
from spark_plugin.driver_planning.sources import source_here, unpickled
from spark_plugin.pruning.handover import nonce_of_request
from spark_plugin.pyspark_internals import data_type_of_json, planned_as_by_worker

PLAN, _WAIT, OPEN, STREAM, READ, WRITE, COMMIT = range(7)
_DONE, _LATER, _FAILED, _IN_FILE, _NOT_BEGUN = b"\0", b"\1", b"\2", b"\3", b"\4"
_HEAD = struct.Struct("!Bi")
_PLANNING = struct.Struct("!i??i")
_TICKET = struct.Struct("!q")
_LENGTH = struct.Struct("!i")

_MOST_TICKETS = 64
_MOST_SECONDS = 60.0
"""Of plannings that nobody asks for again, as the query was cancelled meanwhile, the oldest are forgotten, and, with the next one
that is begun, those that were done so long ago: who waits asks again at once."""

MOST_BYTES = 1 << 20
"""Of an answer that goes through Py4J, which makes a text of it, and copies. A larger one goes through a file."""

_log = logging.getLogger("pydelta")


@dataclass(frozen=True, slots=True)
class Planning:
    """What one planning is asked for. schema: JSON. max_arrow_batch_size, binary_as_bytes, is_stream: as Spark's worker is told
    them."""

    data_source: bytes
    schema: str
    max_arrow_batch_size: int
    binary_as_bytes: bool
    is_stream: bool

    @classmethod
    def parse(cls, body: bytes) -> Planning:
        most_rows, as_bytes, is_stream, length = _PLANNING.unpack_from(body)
        start = _PLANNING.size
        return cls(body[start : start + length], body[start + length :].decode(), most_rows, as_bytes, is_stream)


class _Answer(Future[bytes]):
    done_at = math.inf


class Planner:
    """work: for each kind of request what answers its body. Each runs in a thread of its own, so that a call can say `later`."""

    def __init__(self, secret: bytes, work: Mapping[int, Callable[[bytes], bytes]]) -> None:
        self._secret, self._work = secret, work
        self._tickets = itertools.count(1)
        self._running: OrderedDict[int, _Answer] = OrderedDict()
        self._lock = threading.Lock()
        self._directory: str | None = None

    def apply(self, request: Any) -> bytes:
        """The answer to a request. Raises PermissionError for one without the secret."""
        if not isinstance(request, bytes | bytearray) or not hmac.compare_digest(request[: len(self._secret)], self._secret):
            raise PermissionError("a planning was asked for without the secret of this session")
        # Whatever the error is, a worker does the same work, and raises it where the user sees it. None is logged here: held_log.
        try:
            whole = bytes(request[len(self._secret) :])
            kind, patience_ms = _HEAD.unpack_from(whole)
            body = whole[_HEAD.size :]
            begun = None if kind == _WAIT else self._begin(kind, body)
        except BaseException as error:
            return _NOT_BEGUN + _reason(error)
        try:
            return self._answer(*(begun or self._asked_again(body)), patience_ms)
        except BaseException as error:
            return _FAILED + _reason(error)

    def _asked_again(self, body: bytes) -> tuple[int, _Answer]:
        (ticket,) = _TICKET.unpack(body)
        with self._lock:
            return ticket, self._running[ticket]

    def _answer(self, ticket: int, running: _Answer, patience_ms: int) -> bytes:
        try:
            answer = running.result(patience_ms / 1000)
        except TimeoutError:
            if not running.done():
                return _LATER + _TICKET.pack(ticket)
            answer = running.result()
        finally:
            if running.done():
                with self._lock:
                    self._running.pop(ticket, None)
        return _DONE + answer if len(answer) <= MOST_BYTES else _IN_FILE + os.fsencode(self._in_file(answer))

    def _in_file(self, answer: bytes) -> str:
        """Only this user may read it. What the JVM, which was interrupted, has not deleted goes when this process ends."""
        with self._lock:
            if self._directory is None or not _is_own_directory(self._directory):
                self._directory = tempfile.mkdtemp(prefix="pydelta-plans-")
                weakref.finalize(self, _remove, self._directory, os.getpid())
            directory = self._directory
        handle, path = tempfile.mkstemp(dir=directory)
        with os.fdopen(handle, "wb") as file:
            file.write(answer)
        return path

    def _begin(self, kind: int, body: bytes) -> tuple[int, _Answer]:
        """A ticket, and what will have the answer. Raises what keeps the work from being begun."""
        if not threading.main_thread().is_alive():
            raise RuntimeError("this program has ended but for some threads, and Python starts no others for them")
        ticket, running = next(self._tickets), _Answer()
        work = threading.Thread(target=_run, args=(self._work[kind], body, running), name="pydelta-planning", daemon=True)
        with self._lock:
            too_old = time.monotonic() - _MOST_SECONDS
            for old in [old for old, answer in self._running.items() if answer.done_at < too_old]:
                del self._running[old]
            self._running[ticket] = running
            while len(self._running) > _MOST_TICKETS:
                self._running.popitem(last=False)
        try:
            work.start()
        except BaseException:
            with self._lock:
                self._running.pop(ticket, None)
            raise
        return ticket, running


def _run(work: Callable[[bytes], bytes], body: bytes, running: _Answer) -> None:
    with held() as emit:
        try:
            running.set_result(work(body))
        except BaseException as error:
            _log.debug("a worker has to do what this process could not", exc_info=True)
            running.set_exception(error)
    running.done_at = time.monotonic()
    emit()


def _reason(error: BaseException) -> bytes:
    return f"{type(error).__name__}: {error}".encode(errors="replace")


def _is_own_directory(path: str) -> bool:
    """False where somebody has cleaned up, and where another user has a directory there since, who could exchange its files."""
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()


def _remove(directory: str, process: int) -> None:
    """process: which made the directory. A child of its fork ends too, and has the same finalizers."""
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)


def planned(body: bytes, keep: Callable[[str | None, Any], None] | None = None) -> bytes:
    """What Spark's own worker would write of a planning. keep: is given the request's nonce and the reader of a scan. Raises what
    planning raises."""
    planning = Planning.parse(body)
    source, schema = unpickled(planning.data_source), data_type_of_json(planning.schema)
    assert isinstance(schema, StructType), planning.schema
    with counted_elsewhere():  # the rule counts by which columns scans are filtered
        reader = source.streamReader(schema) if planning.is_stream else source.keeping().reader(schema)
        if keep is not None:
            keep(nonce_of_request(schema), reader)
        return planned_as_by_worker(
            source,
            reader,
            schema,
            max_arrow_batch_size=planning.max_arrow_batch_size,
            binary_as_bytes=planning.binary_as_bytes,
        )


def opened(body: bytes) -> bytes:
    """A DataSource that is made for options of SQL's catalogs, and its columns. Raises what making it raises."""
    told = orjson.loads(body)
    source = source_here(told["options"], told["directory"])
    if source is None:
        raise ValueError(f"{told['options']['path']} is counted from {told['directory']}, and this process is in {os.getcwd()}")
    schema = source.schema().json()
    pickled = pickled_whole(source)
    return _LENGTH.pack(len(pickled)) + pickled + schema.encode()
