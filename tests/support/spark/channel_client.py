"""A client of the driver's channel, with the behaviour of DriverChannel.java."""

from __future__ import annotations

import secrets
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from spark_plugin.driver_channel.frames import PROOF_BYTES, Status, proof
from spark_plugin.driver_channel.server import ChannelServer

SECRET = bytes(range(32))


def connected(server: ChannelServer) -> socket.socket:
    """A connection on which nothing is proved yet."""
    if server.path is not None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(30)
        connection.connect(server.path)
        return connection
    assert server.port is not None
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def received(connection: socket.socket, count: int) -> bytes:
    """Raises EOFError if the server ends the connection first."""
    content = b""
    while len(content) < count:
        try:
            part = connection.recv(count - len(content))
        except ConnectionResetError:
            part = b""
        if not part:
            raise EOFError(content)
        content += part
    return content


def prove(connection: socket.socket, secret: bytes = SECRET) -> None:
    server_nonce, client_nonce = received(connection, PROOF_BYTES), secrets.token_bytes(PROOF_BYTES)
    connection.sendall(client_nonce + proof(secret, b"c", server_nonce, client_nonce))
    assert received(connection, PROOF_BYTES) == proof(secret, b"s", server_nonce, client_nonce)


def request_frame(kind: int, body: bytes = b"", *, patience_ms: int = 5000) -> bytes:
    return struct.pack("!IIB", 5 + len(body), patience_ms, kind) + body


def answer(connection: socket.socket) -> tuple[Status, bytes]:
    (length,) = struct.unpack("!I", received(connection, 4))
    frame = received(connection, length)
    return Status(frame[0]), frame[1:]


@contextmanager
def client(server: ChannelServer, secret: bytes = SECRET) -> Iterator[socket.socket]:
    """A connection on which the client has proved that it knows the secret."""
    connection = connected(server)
    try:
        prove(connection, secret)
        yield connection
    finally:
        connection.close()


def ask(server: ChannelServer, kind: int, body: bytes = b"") -> tuple[Status, bytes]:
    """The answer to one request, after the frames that report running work."""
    with client(server) as connection:
        connection.sendall(request_frame(kind, body))
        status, content = answer(connection)
        while status is Status.WORKING:
            status, content = answer(connection)
        return status, content
