"""Stores that cannot be reached or refuse requests: the error comes in bounded time, says what to do, and contains no secret."""

from __future__ import annotations

import contextlib
import logging
import pickle
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import DeltaError, StorageError, StoreUnavailableError
from delta_py.object_stores.remote import RemoteStore
from delta_py.storage.store_options import StorageOptions
from tests.storage.conftest import CONTAINER, new_url
from tests.support.servers.emulators import KINDS, Emulator, EmulatorKind

SECRETS = {
    "s3": {
        "s3.access_key_id": "somebody",
        "s3.secret_access_key": "s3cret/Key+of==nobody",
        "s3.session_token": "t0ken/of+nobody==",
    },
    "gcs": {"gcs.access_token": "ya29.t0ken-of-nobody"},
    "azure": {"azure.account_key": "a2V5IG9mIG5vYm9keSwgd2hpY2ggaXMgbG9uZw=="},
    "azure by SAS": {"azure.sas_token": "sv=2024-11-04&ss=b&sp=rwdl&se=2099-01-01T00%3A00%3A00Z&sig=s1gnature%2Fof%2Bnobody%3D"},
}
SHOWN = "s3.access_key_id"
LONGEST_SECONDS = 15.0
QUICK = {"storage.request_timeout": "0.5", "storage.retry_timeout": "0.7"}

CALLS: dict[str, Callable[[RemoteStore], object]] = {
    "list": lambda store: list(store.list_from("_delta_log")),
    "read": lambda store: store.read("a"),
    "open": lambda store: store.open_input("a"),
    "put": lambda store: store.put("a", b"1"),
    "put_if_absent": lambda store: store.put_if_absent("a", b"1"),
    "delete": lambda store: store.delete("a"),
    "write": lambda store: written(store, 9 * 1024 * 1024),
}


def written(store: RemoteStore, length: int) -> None:
    with store.open_output("a") as sink:
        sink.write(b"x" * length)


def secret_options(credentials: str, endpoint: str) -> StorageOptions:
    """Options for an endpoint, with invalid credentials."""
    kind = credentials.partition(" ")[0]
    values = {**KINDS[kind].settings(endpoint), **SECRETS[credentials], **QUICK}
    for name in ("gcs.anonymous",) if kind == "gcs" else ("azure.account_key",) if credentials == "azure by SAS" else ():
        del values[name]
    return StorageOptions.of(values)


def secret_store(credentials: str, endpoint: str) -> RemoteStore:
    scheme = KINDS[credentials.partition(" ")[0]].scheme
    return RemoteStore(f"{scheme}://{CONTAINER}/t", secret_options(credentials, endpoint))


def check_has_no_secret(error: BaseException, credentials: str, log: str) -> None:
    """Neither its text, nor its traceback and those of its causes, nor the log."""
    printed = "".join(traceback.format_exception(error)) + repr(error) + str(vars(error)) + log
    for name, secret in SECRETS[credentials].items():
        parts = [part for part in (secret, secret.partition("sig=")[2]) if part]
        assert name == SHOWN or all(part not in printed for part in parts), printed


@contextlib.contextmanager
def bounded_time() -> Iterator[None]:
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < LONGEST_SECONDS


@pytest.fixture
def debug_log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="delta_py")
    return caplog


# ---------------------------------------------------------------- nobody is there


@pytest.fixture
def closed_endpoint() -> Iterator[str]:
    """A port on which no process listens, and which no other process gets during the test."""
    with socket.socket() as bound_socket:
        bound_socket.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound_socket.getsockname()[1]}"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("credentials", SECRETS)
def test_endpoint_where_nobody_is(closed_endpoint: str, credentials: str, call: str, debug_log: pytest.LogCaptureFixture) -> None:
    store = secret_store(credentials, closed_endpoint)
    with bounded_time(), pytest.raises(OSError) as caught:
        CALLS[call](store)
    check_has_no_secret(caught.value, credentials, debug_log.text)
    if call != "put_if_absent":  # its error is for the commit, which checks the log again
        assert isinstance(caught.value, StoreUnavailableError)
        assert f"(the option {credentials.partition(' ')[0]}.endpoint)" in str(caught.value)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_host_that_does_not_exist(kind: EmulatorKind) -> None:
    options = StorageOptions.of({**kind.settings("http://none.invalid"), "storage.retry_timeout": "2"})
    store = RemoteStore(f"{kind.scheme}://{CONTAINER}/t", options)
    with bounded_time(), pytest.raises(StoreUnavailableError, match=r"none\.invalid.*Check the .*endpoint \(the option"):
        store.read("a")


@pytest.fixture
def silent_endpoint() -> Iterator[str]:
    """Accepts connections, and sends nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("credentials", SECRETS)
def test_endpoint_that_is_silent(silent_endpoint: str, credentials: str, call: str, debug_log: pytest.LogCaptureFixture) -> None:
    store = secret_store(credentials, silent_endpoint)
    with bounded_time(), pytest.raises(OSError) as caught:
        CALLS[call](store)
    check_has_no_secret(caught.value, credentials, debug_log.text)
    if call != "put_if_absent":
        assert isinstance(caught.value, StoreUnavailableError)
        assert "storage.retry_timeout" in str(caught.value)


# ---------------------------------------------------------------- answers that refuse


@contextlib.contextmanager
def answering(status: int, body: bytes = b"", **headers: str) -> Iterator[str]:
    """The endpoint of a server that answers every request like this."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            content = b"" if self.command == "HEAD" else body
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("credentials", SECRETS)
def test_credentials_that_the_store_refuses(
    credentials: str, call: str, status: int, debug_log: pytest.LogCaptureFixture
) -> None:
    """As gateways and stores send it, without a body."""
    with answering(status) as endpoint:
        store = secret_store(credentials, endpoint)
        with bounded_time(), pytest.raises(StorageError, match=r"[Cc]redentials") as caught:
            CALLS[call](store)
    check_has_no_secret(caught.value, credentials, debug_log.text)


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("credentials", SECRETS)
def test_throttled_request_is_repeated_until_the_timeout(credentials: str, status: int) -> None:
    with answering(status) as endpoint:
        store = secret_store(credentials, endpoint)
        begin = time.monotonic()
        with bounded_time(), pytest.raises(StoreUnavailableError, match=r"asked again and again.*storage\.retry_timeout"):
            store.read("a")
        assert time.monotonic() - begin > 0.1


@pytest.mark.parametrize("credentials", SECRETS)
def test_answers_that_are_no_answers_of_a_store_are_errors(credentials: str) -> None:
    """A proxy's page for people, instead of a listing."""
    with answering(200, b"<html><body>Sign in</body></html>", **{"Content-Type": "text/html"}) as endpoint:
        store = secret_store(credentials, endpoint)
        with bounded_time(), pytest.raises((StorageError, OSError)):
            list(store.list_from("_delta_log"))


WRONG_KEYS = {
    "s3": {"s3.secret_access_key": "wrong-secret-key"},
    "azure": {"azure.account_key": "d3Jvbmcga2V5LCB3aGljaCBpcyBsb25nIHRvbw=="},
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("emulator", WRONG_KEYS, indirect=True)
def test_wrong_key_is_refused_by_the_store_itself(emulator: Emulator, call: str) -> None:
    wrong = WRONG_KEYS[emulator.kind.name]
    store = RemoteStore(new_url(emulator), StorageOptions.of({**emulator.settings(), **QUICK, **wrong}))
    with bounded_time(), pytest.raises(StorageError, match=r"key|credentials") as caught:
        CALLS[call](store)
    assert all(secret not in "".join(traceback.format_exception(caught.value)) for secret in wrong.values())


@pytest.mark.parametrize("call", ["list", "put", "put_if_absent", "write"])
def test_container_that_is_missing_is_named(emulator: Emulator, call: str) -> None:
    store = RemoteStore(f"{emulator.kind.scheme}://no-such-bucket/t", emulator.options(storage_retry_timeout="2"))
    with bounded_time(), pytest.raises(StorageError, match=r"no-such-bucket.*Make the (bucket|container), or correct its name"):
        CALLS[call](store)


def test_table_in_a_container_that_is_missing_is_no_empty_place(emulator: Emulator) -> None:
    """The error does not say that there is no table, and no table is created."""
    store = RemoteStore(f"{emulator.kind.scheme}://no-such-bucket/t", emulator.options(storage_retry_timeout="2"))
    actions: list[Callable[[], Any]] = [
        lambda: DeltaTable(store.root, store=store),
        lambda: write_delta(store.root, pa.table({"id": [1]}), store=store),
    ]
    for action in actions:
        with bounded_time(), pytest.raises(DeltaError, match="correct its name"):
            action()


def test_errors_of_the_store_survive_pickling(emulator: Emulator) -> None:
    store = RemoteStore(f"{emulator.kind.scheme}://no-such-bucket/t", emulator.options(storage_retry_timeout="1"))
    with pytest.raises(StorageError) as caught:
        store.put("a", b"1")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.error_class) == (str(caught.value), caught.value.error_class)
