"""Who can talk to the driver's Python in a session where pydelta is registered: the JVM alone."""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from delta_py.errors import UnsupportedOperationError
from spark_plugin import pruning, register
from spark_plugin.driver_channel import server as server_module
from spark_plugin.driver_channel.channel import channel_of
from tests.support.spark.driver_offers import server_of
from tests.support.tables.small_table import make_table

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


RELAY = """
import socket, sys, threading
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(64)
print("listening", flush=True)

def pump(source, target, count=0):
    try:
        while part := source.recv(1 << 16):
            count += len(part)
            target.sendall(part)
        source.shutdown(socket.SHUT_RDWR)
        target.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    return count

def serve(client):
    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[2])
    threading.Thread(target=pump, args=(client, server), daemon=True).start()
    print(pump(server, client), flush=True)

while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
"""

UNKNOWN, LARGE = 99, 98
"""Kinds of requests that nothing answers, and that a test answers."""


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


def asked(spark: SparkSession, kind: int, body: bytes = b"") -> bytes:
    """The answer to a request of the JVM's."""
    answer: bytes = channel_of(spark).java.ask(bytearray([kind]) + body, 15_000, True)
    return answer


def java_field(java: Any, name: str) -> Any:
    field = java.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(java)


def invoked(spark: SparkSession, java: Any, name: str, *arguments: Any) -> Any:
    """What a method of a class gives that is not public."""
    context: Any = spark.sparkContext
    array = context._gateway.new_array(context._jvm.Object, len(arguments))
    for place, argument in enumerate(arguments):
        array[place] = argument
    method = next(method for method in java.getClass().getDeclaredMethods() if method.getName() == name)
    method.setAccessible(True)
    return method.invoke(java, array)


def java_call(spark: SparkSession, kind: int) -> Any:
    """A Call that has not begun."""
    context: Any = spark.sparkContext
    channel = channel_of(spark).java
    made = channel.getClass().getClassLoader().loadClass("pydelta.driver.Call").getDeclaredConstructors()[0]
    made.setAccessible(True)
    arguments = context._gateway.new_array(context._jvm.Object, 3)
    arguments[0], arguments[1], arguments[2] = channel, bytearray([kind]), 5000
    return made.newInstance(arguments)


def drop_idle_connections(spark: SparkSession) -> None:
    idle = java_field(channel_of(spark).java, "idle")
    while (connection := idle.pollFirst()) is not None:
        invoked(spark, connection, "close")


def direct_bytes(spark: SparkSession) -> int:
    """What the JVM has in buffers beside its heap."""
    context: Any = spark.sparkContext
    java = context._jvm.java
    beans = java.lang.Class.forName("java.lang.management.BufferPoolMXBean")
    used = beans.getMethod("getMemoryUsed", context._gateway.new_array(java.lang.Class, 0))
    pools = [*java.lang.management.ManagementFactory.getPlatformMXBeans(beans)]
    named = beans.getMethod("getName", context._gateway.new_array(java.lang.Class, 0))
    none = context._gateway.new_array(context._jvm.Object, 0)
    return sum(used.invoke(pool, none) for pool in pools if named.invoke(pool, none) == "direct")


def test_registering_opens_no_port_of_this_process(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    spark_port = gateway._callback_server  # of Spark's foreachBatch, where another test has used it
    before = listening_ports({os.getpid()})
    register(spark.newSession())
    with pytest.raises(UnsupportedOperationError, match="is no Delta table"):
        spark.sql("CALL pydelta.system.history('/no/such/table')")
    assert listening_ports({os.getpid()}) == before
    assert gateway._callback_server is spark_port
    assert server_of(spark).path is not None and server_of(spark).port is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_another_user_cannot_reach_python_or_the_jvm(spark: SparkSession, property_name: str) -> None:
    answers = attack(spark, "stranger", property_name)
    assert {*answers} == {"PermissionError"}
    assert not is_set(spark, property_name)


def test_another_process_of_the_same_user_is_told_nothing(spark: SparkSession, property_name: str) -> None:
    """Not even the 32 random bytes that it would have to sign: the JVM could be made to sign them for it."""
    channel = channel_of(spark)
    answers = attack(spark, "same user", property_name)
    assert {*answers} <= {0, "ConnectionResetError", "BrokenPipeError"}
    assert not is_set(spark, property_name)
    assert channel_of(spark) is channel


def test_function_of_a_query_is_told_nothing(spark: SparkSession, tmp_path: Path, property_name: str) -> None:
    path = server_of(spark).path

    @udf("string", useArrow=False)
    def attacking(number: int) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(path)
            try:
                nonce = connection.recv(32)
                connection.sendall(nonce + bytes(64) + b"\0\0\0\7\0\0\0\1\7{}")
                return f"{len(nonce)} {len(connection.recv(1000))}"
            except (ConnectionResetError, BrokenPipeError):
                return "0 0"

    assert [row[0] for row in spark.range(2).select(attacking("id")).collect()] == ["0 0"] * 2
    table = make_table(tmp_path / "t", [pa.table({"id": [1, 2]})])
    before = pruning.status(spark)["driver-planning"].used
    assert spark.read.format("pydelta").load(table).filter("id = 2").count() == 1
    assert pruning.status(spark)["driver-planning"].used == before + 1


def test_relay_of_the_same_user_reaches_nothing(spark: SparkSession) -> None:
    """It puts its own socket in the place of the server's, and hands on what both ends prove."""
    path = str(server_of(spark).path)
    aside = f"{path}2"
    os.rename(path, aside)
    relay = subprocess.Popen([sys.executable, "-S", "-c", RELAY, path, aside], stdout=subprocess.PIPE, text=True)
    try:
        assert relay.stdout is not None and relay.stdout.readline() == "listening\n"
        drop_idle_connections(spark)
        with pytest.raises(Py4JJavaError, match="ConnectException: the driver's Python is not reached"):
            asked(spark, UNKNOWN)
    finally:
        relay.kill()
        relayed = relay.communicate()[0]
        os.rename(aside, path)
    assert {*relayed.split()} == {"0"}, "bytes that the server has sent"


def test_call_waits_while_python_takes_no_more_connections(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where many calls begin at once: Python admits 16 connections at a time that have not proved themselves yet."""
    drop_idle_connections(spark)
    monkeypatch.setattr(server_module, "MAX_UNPROVED_CONNECTIONS", 0)
    admitting = threading.Timer(0.3, monkeypatch.undo)
    admitting.start()
    with pytest.raises(Py4JJavaError, match=f"RejectedExecutionException: nothing answers requests of the kind {UNKNOWN}"):
        asked(spark, UNKNOWN)
    admitting.join()


def test_late_cancellation_of_a_call_keeps_other_connections(spark: SparkSession) -> None:
    java = channel_of(spark).java
    call = java_call(spark, UNKNOWN)
    with pytest.raises(Py4JJavaError, match="nothing answers requests of the kind 99"):
        invoked(spark, call, "call")
    connection = java_field(java, "idle").peekFirst()
    invoked(spark, call, "giveUp", False)
    assert invoked(spark, connection, "isAlive")


def test_large_messages_use_little_memory_outside_the_heap(spark: SparkSession) -> None:
    content = os.urandom(1 << 20) * 24
    server_of(spark).handle({LARGE: lambda body: content if len(body) == 1 << 24 else b""})
    before = direct_bytes(spark)
    assert asked(spark, LARGE, bytes(1 << 24)) == content
    assert direct_bytes(spark) - before < 1 << 23


@pytest.mark.parametrize("text", ["CALL pydelta.system.optimize('{path}')", "EXECUTE IMMEDIATE 'OPTIMIZE pydelta.`{path}`'"])
def test_statement_jobs_have_job_group_and_tags_of_the_caller(spark: SparkSession, tmp_path: Path, text: str) -> None:
    table = make_table(tmp_path / "t", [pa.table({"id": [1]}), pa.table({"id": [2]})])
    context = spark.sparkContext
    group = f"group {uuid.uuid4().hex}"
    context.setJobGroup(group, "compaction")
    spark.addTag("nightly")
    try:
        spark.sql(text.format(path=table)).collect()
        assert len(context.statusTracker().getJobIdsForGroup(group)) > 0
        inside: Any = spark
        tag = inside._jsparkSession.managedJobTags().get().apply("nightly")
        assert len(inside._jsc.sc().statusTracker().getJobIdsForTag(tag)) > 0
    finally:
        spark.removeTag("nightly")
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
