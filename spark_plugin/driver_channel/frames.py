"""The bytes on a connection of the channel: the proof of the secret, requests and answers.

    server                                        client
    32 random bytes                          ->
                                             <-   32 random bytes, HMAC(secret, "c" + server's bytes + client's bytes)
    HMAC(secret, "s" + server's + client's)  ->
                                             <-   request: length (u32), patience in ms (u32), kind (u8), body
    answer: length (u32), status (u8), body  ->

A length counts the bytes after it. Numbers are big-endian. HMAC is HMAC-SHA256. While the work of a request runs longer than its
patience, the server sends frames with the status WORKING. A request and its answer alternate on a connection.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
import time
from dataclasses import dataclass
from enum import IntEnum

PROOF_BYTES = 32
MAX_REQUEST_BYTES = (1 << 26) + 64
"""A kind and a body of at most 64 MiB, and room for the head."""
MAX_ANSWER_BYTES = 1 << 30
"""DriverChannel.java takes no larger frame."""

_LENGTH = struct.Struct("!I")
_REQUEST = struct.Struct("!IB")
_ANSWER = struct.Struct("!IB")


class Status(IntEnum):
    """How a request went, as DriverChannel.java reads it. DONE: the body is the result. WORKING: the work continues, and the
    body is empty. FAILED: the work failed, or its answer is too long. NOT_BEGUN: no work was done. The body of the last two says
    why."""

    DONE = 0
    WORKING = 1
    FAILED = 2
    NOT_BEGUN = 3


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the client. kind: which function answers it. patience_ms: the time without an answer after which the client
    wants a WORKING frame."""

    kind: int
    patience_ms: int
    body: memoryview


class ChannelError(Exception):
    """The other end broke the rules of the channel, or took too long. The connection must be closed."""


def prove_to_client(connection: socket.socket, secret: bytes, limit_seconds: float) -> None:
    """Check that the client knows the secret, and prove that this process knows it too.

    This function parses nothing that the client sends: it only compares the bytes. Raises ChannelError and OSError.
    """
    deadline = time.monotonic() + limit_seconds
    server_nonce = secrets.token_bytes(PROOF_BYTES)
    connection.settimeout(limit_seconds)
    connection.sendall(server_nonce)
    answer = read_exactly(connection, 2 * PROOF_BYTES, deadline)
    client_nonce, client_proof = bytes(answer[:PROOF_BYTES]), bytes(answer[PROOF_BYTES:])
    if not hmac.compare_digest(client_proof, proof(secret, b"c", server_nonce, client_nonce)):
        raise ChannelError("a client does not know the secret of this application")
    connection.settimeout(limit_seconds)  # read_exactly has left the short rest of its time as the timeout
    connection.sendall(proof(secret, b"s", server_nonce, client_nonce))
    connection.settimeout(None)


def proof(secret: bytes, side: bytes, server_nonce: bytes, client_nonce: bytes) -> bytes:
    """Return the bytes by which one side proves that it knows the secret. side: `c` for the client and `s` for the server, so
    that nobody can return one side's proof as that of the other."""
    return hmac.digest(secret, side + server_nonce + client_nonce, "sha256")


def read_request(connection: socket.socket, limit_seconds: float) -> Request | None:
    """Wait for the next request without a limit of time, and return it; None if the client ended the connection. limit_seconds:
    the time for the rest of the request after its first byte.

    connection: has no timeout, before and after. Raises ChannelError and OSError.
    """
    first_byte = connection.recv(1)
    if not first_byte:
        return None
    deadline = time.monotonic() + limit_seconds
    (length,) = _LENGTH.unpack(first_byte + read_exactly(connection, _LENGTH.size - 1, deadline))
    if not _REQUEST.size <= length <= MAX_REQUEST_BYTES:
        raise ChannelError(f"a request of {length} bytes, where {_REQUEST.size} to {MAX_REQUEST_BYTES} are allowed")
    frame = memoryview(read_exactly(connection, length, deadline))
    patience_ms, kind = _REQUEST.unpack_from(frame)
    connection.settimeout(None)
    return Request(kind, patience_ms, frame[_REQUEST.size :])


def answer_head(status: Status, body_bytes: int) -> bytes:
    """Return the bytes that precede the body of an answer."""
    return _ANSWER.pack(1 + body_bytes, status)


def read_exactly(connection: socket.socket, count: int, deadline: float) -> bytearray:
    """Read `count` bytes. deadline: of time.monotonic(). Raises ChannelError if the bytes do not come in time, or the
    connection ends before them.

    Bytes that have arrived are taken after the deadline too: this process may have been stopped, or another thread may have held
    the interpreter's lock.
    """
    content = bytearray(count)
    remaining_part = memoryview(content)
    while remaining_part:
        connection.settimeout(max(deadline - time.monotonic(), 0))
        try:
            received = connection.recv_into(remaining_part)
        except (TimeoutError, BlockingIOError):  # the second one with a timeout of 0, which means not to wait
            raise ChannelError(f"{count} bytes did not come in time") from None
        if not received:
            raise ChannelError("the connection ended within a message")
        remaining_part = remaining_part[received:]
    return content
