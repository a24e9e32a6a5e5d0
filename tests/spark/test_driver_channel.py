"""Who can talk to the driver's Python in a session where pydelta is registered: the JVM alone."""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from delta_py.errors import TableNotFoundError
from spark_plugin import pruning, register
from spark_plugin.driver_channel.channel import channel_of
from tests.support.driver_offers import server_of
from tests.support.small_table import make_table

ATTACK = """
import encodings.idna, json, os, socket, struct, sys  # some of it cannot be read as another user
if sys.argv[1] == "stranger":
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
path, ports, name = sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]

def lines(*parts):
    return "".join(part + "\\n" for part in parts).encode()

# A call of an offered object. Its parameter refers to an object of the JVM by an id. Python sends the id to the JVM when it lets
# go of the reference: a carriage return in it ends the line there, and a whole command follows.
call = "c\\rz:java.lang.System\\rsetProperty\\rs" + name + "\\rstaken\\re"
reference = "ro1\\re\\r" + call
escaped = reference.replace("\\r", "\\\\r")
ATTEMPTS = [lines("c", target, method, text, "e") for target in ("p0", "p1", "t") for method in ("apply", "call")
            for text in (reference, escaped)]
ATTEMPTS += [lines("m", "d", reference, "e"), lines("m", "d", escaped, "e"), b"A\\n"]
FRAMES = [struct.pack("!IIB", 5 + len(body), 100, kind) + body
          for kind in (*range(9), 127, 255) for body in (b"", b"{}", b"\\x80\\x04.")]
FRAMES += [struct.pack("!I", length) for length in (0, 1, 2**31, 2**32 - 1)] + [b"", b"\\r\\n" * 1000]

def attempt(connect, content):
    try:
        with connect() as connection:
            connection.settimeout(0.3)
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(1000):
                answer += part
            return len(answer)
    except OSError as error:
        return type(error).__name__

def unix():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection

answers = [attempt(unix, bytes(64) + frame) for frame in FRAMES]
for port in ports:
    for content in ATTEMPTS:
        attempt(lambda: socket.create_connection(("127.0.0.1", port), timeout=2), content)
print(json.dumps(answers))
"""


def listening_ports(processes: set[int]) -> set[int]:
    """TCP ports that the processes listen on, as anybody can find them."""
    inodes = set()
    for process in processes:
        for entry in Path(f"/proc/{process}/fd").iterdir():
            try:
                target = os.readlink(entry)
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


@pytest.fixture
def property_name(spark: SparkSession) -> Iterator[str]:
    """A system property of the JVM that attacks try to set."""
    name = f"pydelta.attacked.{uuid.uuid4().hex}"
    yield name
    spark._jvm.java.lang.System.clearProperty(name)


def attack(spark: SparkSession, who: str, name: str) -> list[Any]:
    """What each frame was answered on the channel's socket. All ports of this process are attacked too."""
    server = server_of(spark)
    ports = sorted(listening_ports({os.getpid()}))
    command = [sys.executable, "-S", "-c", ATTACK, who, str(server.path), json.dumps(ports), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd="/")
    assert done.stderr == ""
    answers: list[Any] = json.loads(done.stdout)
    assert len(answers) == 39
    return answers


def is_set(spark: SparkSession, name: str) -> bool:
    gc.collect()  # Py4J tells the JVM of references that are gone
    return spark._jvm.java.lang.System.getProperty(name) is not None


def test_registering_opens_no_port_of_this_process(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    spark_port = gateway._callback_server  # of Spark's foreachBatch, where another test has used it
    before = listening_ports({os.getpid()})
    register(spark.newSession())
    with pytest.raises(TableNotFoundError):
        spark.sql("CALL pydelta.system.history('/no/such/table')")
    assert listening_ports({os.getpid()}) == before
    assert gateway._callback_server is spark_port
    assert server_of(spark).path is not None and server_of(spark).port is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_another_user_of_the_machine_reaches_neither_python_nor_the_jvm(spark: SparkSession, property_name: str) -> None:
    answers = attack(spark, "stranger", property_name)
    assert {*answers} == {"PermissionError"}
    assert not is_set(spark, property_name)


def test_process_without_the_secret_is_told_nothing(spark: SparkSession, property_name: str) -> None:
    """Even one of the same user: it gets the 32 random bytes that it would have to sign."""
    answers = attack(spark, "same user", property_name)
    assert {*answers} <= {32, "ConnectionResetError", "BrokenPipeError"}
    assert not is_set(spark, property_name)
    assert not channel_of(spark).is_closed


def test_function_of_a_query_is_told_nothing(spark: SparkSession, tmp_path: Path, property_name: str) -> None:
    path = server_of(spark).path

    @udf("string", useArrow=False)
    def attacking(number: int) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(path)
            nonce = connection.recv(32)
            connection.sendall(nonce + nonce + b"\0\0\0\5\0\0\0\1\7{}")
            try:
                return f"{len(nonce)} {len(connection.recv(1000))}"
            except ConnectionResetError:
                return f"{len(nonce)} 0"

    assert [row[0] for row in spark.range(2).select(attacking("id")).collect()] == ["32 0"] * 2
    table = make_table(tmp_path / "t", [pa.table({"id": [1, 2]})])
    before = pruning.status(spark).driver
    assert spark.read.format("pydelta").load(table).filter("id = 2").count() == 1
    assert pruning.status(spark).driver == before + 1


def test_jobs_of_a_procedure_have_the_job_group_of_its_caller(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", [pa.table({"id": [1]}), pa.table({"id": [2]})])
    context = spark.sparkContext
    group = f"group {uuid.uuid4().hex}"
    context.setJobGroup(group, "compaction")
    try:
        spark.sql(f"CALL pydelta.system.optimize('{table}')").collect()
        assert len(context.statusTracker().getJobIdsForGroup(group)) > 0
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
