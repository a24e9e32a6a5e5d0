"""A proxy before a server of any protocol with requests and answers, which cuts some of the connections.

    with TcpProxy(port, plan) as proxy:
        psycopg.connect(f"postgresql://...@127.0.0.1:{proxy.port}/postgres")

It runs in threads of this process and only listens to this machine. plan: what to do with a connection, by what its client has
just sent; None for nothing.
"""

from __future__ import annotations

import random
import select
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Self

_LATE_SECONDS = 0.3
_SILENCE_SECONDS = 60.0
_MOST_BYTES = 1 << 20


class Cut(Enum):
    BEFORE = "the connection is reset before the server has seen what was sent"
    AFTER = "the server does what was asked, and the connection is reset instead of the answer"
    CLOSED_AFTER = "the same, and the connection is closed"
    LATE = "the connection is reset, and the server sees what was sent some time later"


class RandomCuts:
    """A plan: this share of what clients send is cut, each way equally often."""

    def __init__(self, seed: int, share: float, cuts: Sequence[Cut] = tuple(Cut)) -> None:
        self._draw, self._share, self._cuts, self._lock = random.Random(seed), share, cuts, threading.Lock()

    def __call__(self, sent: bytes) -> Cut | None:
        with self._lock:
            return self._draw.choice(self._cuts) if self._draw.random() < self._share else None


class TcpProxy:
    """upstream_port: of the server, on this machine. counts: how often it has cut, by kind."""

    def __init__(self, upstream_port: int, plan: Callable[[bytes], Cut | None]) -> None:
        self.plan, self.counts = plan, Counter[Cut]()
        self._upstream_port = upstream_port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._ends = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        for thread in list(self._threads):
            thread.join()
        self._listener.close()

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._ends.is_set():
            if select.select([self._listener], [], [], 0.05)[0]:
                client, _ = self._listener.accept()
                self._start(lambda client=client: self._serve(client))

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._upstream_port), timeout=_SILENCE_SECONDS) as server:
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                while not self._ends.is_set() and self._pass_on(client, server):
                    pass
            except OSError:
                return  # either side has gone

    def _pass_on(self, client: socket.socket, server: socket.socket) -> bool:
        """Whether the connection continues."""
        readable, _, _ = select.select([client, server], [], [], 0.05)
        if server in readable:
            answer = server.recv(_MOST_BYTES)
            client.sendall(answer)
            if not answer:
                return False
        if client in readable:
            sent = client.recv(_MOST_BYTES)
            if not sent:
                return False
            if (cut := self.plan(sent)) is not None:
                self.counts[cut] += 1
                self._cut(cut, sent, client, server)
                return False
            server.sendall(sent)
        return True

    def _cut(self, cut: Cut, sent: bytes, client: socket.socket, server: socket.socket) -> None:
        match cut:
            case Cut.BEFORE:
                _reset(client)
            case Cut.AFTER | Cut.CLOSED_AFTER:
                server.sendall(sent)
                server.recv(_MOST_BYTES)
                if cut is Cut.AFTER:
                    _reset(client)
            case Cut.LATE:
                _reset(client)
                self._ends.wait(_LATE_SECONDS)
                server.sendall(sent)
                server.recv(_MOST_BYTES)


def _reset(client: socket.socket) -> None:
    """Ends a connection by RST, not by FIN."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
