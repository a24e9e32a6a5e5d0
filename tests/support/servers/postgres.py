"""A PostgreSQL server for a test run: Debian's package, a separate cluster in a temporary directory, only on loopback."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_USER = "postgres"  # the server refuses to run as root; Debian's package makes this user
_PASSWORD = "secret-of-the-ledger"
_START_SECONDS = 60.0


def programs() -> Path | None:
    """The directory of initdb and postgres; None if the package is not installed."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return installed[-1].parent if installed else None


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The URL of a database; the server ends with the block."""
    binaries = programs()
    assert binaries is not None, "the package postgresql is not installed"
    directory = Path(tempfile.mkdtemp(prefix="pydelta-postgres-"))
    user = _USER if os.getuid() == 0 else None
    try:
        password = directory / "password"
        password.write_text(_PASSWORD)
        if user is not None:
            shutil.chown(directory, user)
            shutil.chown(password, user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        data = directory / "data"
        initdb = [str(binaries / "initdb"), "-D", str(data), "-U", "pydelta", "-A", "scram-sha-256", f"--pwfile={password}"]
        subprocess.run(initdb, user=user, check=True, cwd=directory, stdout=subprocess.DEVNULL)
        command = [str(binaries / "postgres"), "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(directory)]
        with (directory / "log").open("wb") as log:
            server = subprocess.Popen(command, user=user, cwd=directory, stdout=log, stderr=log)
        try:
            _wait(port, server, directory / "log")
            yield f"postgresql://pydelta:{_PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # then it waits for no client
            server.wait(30)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _wait(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        if b"ready to accept connections" in log.read_bytes():
            return
        time.sleep(0.1)
    raise RuntimeError(f"PostgreSQL did not come up at port {port}: {log.read_text()[-2000:]}")
