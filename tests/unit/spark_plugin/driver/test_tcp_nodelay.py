"""Our tasks do not wait for the acknowledgement that Linux delays."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from delta_py import write_delta
from spark_plugin.data_source import DeltaSource
from spark_plugin.tasks import tcp_nodelay
from spark_plugin.tasks.tcp_nodelay import answer_promptly

SCHEMA = StructType([StructField("id", LongType())])
DELAY = 0.03
"""Linux waits for 40 ms."""


def seconds_between(*, prompt: bool) -> float:
    """The time from the end of a task's description to its rows, which a sender that delays small packets sends separately. The
    minimum of a worker's last tasks: Linux acknowledges the first data of a new connection immediately."""
    times = []
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as worker:
        spark, _ = server.accept()
        with spark:
            for _ in range(20):
                for size in (10_000, 400):
                    spark.sendall(bytes(size))
                left = 10_000
                while left:
                    left -= len(worker.recv(left))
                start = time.perf_counter()
                if prompt:
                    answer_promptly()
                worker.recv(400)
                times.append(time.perf_counter() - start)
                worker.sendall(b"done")
                spark.recv(4)
    return min(times[10:])


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="the option is of Linux")
def test_rows_come_at_once() -> None:
    if seconds_between(prompt=False) < DELAY:
        pytest.skip("this system acknowledges at once")
    assert seconds_between(prompt=True) < DELAY / 2


def test_nothing_is_asked_of_systems_without_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_nodelay, "_OPEN_FILES", "/nowhere")
    answer_promptly()
    monkeypatch.setattr(tcp_nodelay, "_QUICKACK", None)
    monkeypatch.setattr(os, "listdir", pytest.fail)
    answer_promptly()


@pytest.mark.parametrize("timeout", [None, 30.0])
def test_no_file_is_opened_or_changed(timeout: float | None) -> None:
    """A socket's mode is also that of its copies, and a default timeout would change it."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        one, other = socket.socketpair()
        with one, other, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, socket.socket(socket.AF_INET6) as unused:
            sockets = (server, connection, one, other, datagrams, unused)
            other.setblocking(False)
            modes, files = [os.get_blocking(each.fileno()) for each in sockets], os.listdir("/proc/self/fd")
            socket.setdefaulttimeout(timeout)
            try:
                answer_promptly()
            finally:
                socket.setdefaulttimeout(None)
            assert [os.get_blocking(each.fileno()) for each in sockets] == modes == [True, True, True, False, True, True]
            assert os.listdir("/proc/self/fd") == files


@pytest.mark.parametrize("make", ["reader", "streamReader", "writer", "streamWriter"])
def test_what_a_task_unpickles_asks(make: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"id": [1]}))
    source = DeltaSource({"path": path})
    more = (False,) if make.endswith("riter") else ()
    task_source: Any = getattr(source, make)(SCHEMA, *more)
    calls = []
    monkeypatch.setattr(tcp_nodelay, "answer_promptly", lambda: calls.append(make))
    copy = pickle.loads(pickle.dumps(task_source))
    assert type(copy) is type(task_source) and calls == [make] and copy.__dict__.keys() == task_source.__dict__.keys()


@pytest.mark.parametrize("is_on", [True, False])
def test_task_imports_run_without_garbage_collection(is_on: bool, tmp_path: Path) -> None:
    write_delta(str(tmp_path / "t"), pa.table({"id": [1]}))
    source = DeltaSource({"path": str(tmp_path / "t")})
    (tmp_path / "reader").write_bytes(pickle.dumps(source.reader(SCHEMA)))
    code = """
import gc, pickle, sys, spark_plugin.tasks.tcp_nodelay
while_importing = []
class Watch:
    def find_spec(self, name, path=None, target=None):
        while_importing.append((name, gc.isenabled()))
sys.meta_path.insert(0, Watch())
if sys.argv[2] == "False":
    gc.disable()
pickle.load(open(sys.argv[1], "rb"))
print(gc.isenabled(), *(dict(while_importing)[name] for name in ("spark_plugin.source.readers", "delta_py.parquet.file_reader")))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "reader"), str(is_on)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"{is_on} False False\n"
