"""Servers that speak the protocols of object stores, started for a test run: S3, Google Cloud Storage, Azure, DynamoDB.

    with running(KINDS["s3"]) as emulator:
        emulator.make_container("bucket")
        RemoteStore("s3://bucket/t", emulator.options())

Each listens on its own port, only for this machine, stores its data in a temporary directory or in memory, and ends with the
process that started it, however that ends. The programs are those of emulator_programs.py. They differ from the stores in this:
fake-gcs-server answers nobody while an upload is running; Azurite ignores where a listing has to start.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from delta_py.storage.store_options import StorageOptions
from tests.support.servers.emulator_programs import AZURITE, DYNAMODB_LOCAL, FAKE_GCS, VERSITYGW

_START_SECONDS = 60.0
_PORTS_TRIED = 3
_LOOPBACK_DYNAMODB = Path(__file__).resolve().parent / "java" / "LoopbackDynamoDb.java"
_ACCESS_KEY, _SECRET_KEY = "testaccesskey", "test-secret-key-of-s3"
_AZURE_ACCOUNT = "devstoreaccount1"
# Azurite's own key, from its documentation.
_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class EmulatorKind:
    """command: starts the server at a port, with its files in a directory. settings: the StorageOptions that reach an endpoint.
    make_container: makes a bucket with a name at this endpoint, or what is called so there. has_tls: it is used over TLS."""

    name: str
    scheme: str
    command: Callable[[int, Path], Sequence[str]]
    settings: Callable[[str], dict[str, str]]
    make_container: Callable[[dict[str, str], str], None]
    has_tls: bool = False


@dataclass(frozen=True)
class Emulator:
    """A running server. port: on 127.0.0.1."""

    kind: EmulatorKind
    port: int

    @property
    def endpoint(self) -> str:
        return f"{'https' if self.kind.has_tls else 'http'}://127.0.0.1:{self.port}"

    def settings(self, endpoint: str | None = None, **more_options: str) -> dict[str, str]:
        """endpoint: of a proxy before the server. others: more options by name, with `_` for the first dot."""
        dotted = {name.replace("_", ".", 1): value for name, value in more_options.items()}
        return self.kind.settings(endpoint or self.endpoint) | dotted

    def options(self, endpoint: str | None = None, **more_options: str) -> StorageOptions:
        return StorageOptions.of(self.settings(endpoint, **more_options))

    def make_container(self, name: str) -> None:
        self.kind.make_container(self.settings(), name)


@contextlib.contextmanager
def running(kind: EmulatorKind) -> Iterator[Emulator]:
    """Raises ToolError if the program is not installed, RuntimeError if it does not start."""
    with tempfile.TemporaryDirectory(prefix=f"pydelta-{kind.name}-") as directory:
        process, port = _start(kind, Path(directory))
        try:
            yield Emulator(kind, port)
        finally:
            _stop(process)


# ---------------------------------------------------------------- processes


def _start(kind: EmulatorKind, directory: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Another process may take a port between our choice and the server's start: then another port is tried."""
    log = directory / "log"
    data = directory / "data"
    data.mkdir()
    for _ in range(_PORTS_TRIED):
        port = _free_port()
        with log.open("wb") as output:
            process = subprocess.Popen(
                kind.command(port, data), cwd=directory, stdout=output, stderr=output, preexec_fn=_end_with_parent
            )
        if _is_answered(process, port, kind.has_tls):
            return process, port
        _stop(process)
    raise RuntimeError(f"The emulator {kind.name} does not answer. Its output ends with:\n{log.read_text()[-3000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_answered(process: subprocess.Popen[bytes], port: int, has_tls: bool) -> bool:
    """Waits for any answer to a request."""
    end = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        if has_tls:
            anyone = ssl._create_unverified_context()
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=anyone)
        try:
            connection.request("GET", "/")
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
        else:
            time.sleep(0.1)  # our server ends if another one answers
            return process.poll() is None
        finally:
            connection.close()
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Immediately: some servers would wait for connections that clients keep open."""
    process.kill()
    process.wait()


_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def _end_with_parent() -> None:
    """Linux kills the server when the thread that started it ends: so the thread that runs the tests starts it."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


# ---------------------------------------------------------------- the kinds


def _versitygw(port: int, data: Path) -> list[str]:
    program = str(VERSITYGW.path("versitygw"))
    keys = ["--access", _ACCESS_KEY, "--secret", _SECRET_KEY]
    return [program, *keys, "--port", f"127.0.0.1:{port}", "--quiet", "posix", str(data)]


def _s3_settings(endpoint: str) -> dict[str, str]:
    keys = {"s3.access_key_id": _ACCESS_KEY, "s3.secret_access_key": _SECRET_KEY}
    return {"s3.endpoint": endpoint, "s3.region": "us-east-1", **keys}


def _make_s3_bucket(settings: dict[str, str], name: str) -> None:
    boto3_client("s3", settings["s3.endpoint"]).create_bucket(Bucket=name)


def boto3_client(service: str, endpoint: str) -> object:
    """A separate client of boto3, to check what pydelta has done: typed as Any would be."""
    import boto3

    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=_ACCESS_KEY,
        aws_secret_access_key=_SECRET_KEY,
    )


def signed_headers(method: str, target: str, headers: dict[str, str], body: bytes) -> dict[str, str]:
    """Headers of a request to the emulator of S3, with a signature of them."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    request = AWSRequest(method, f"http://{headers['host']}{target}", headers=headers, data=body)
    S3SigV4Auth(Credentials(_ACCESS_KEY, _SECRET_KEY), "s3", "us-east-1").add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


def _fake_gcs(port: int, data: Path) -> list[str]:
    program = str(FAKE_GCS.path("fake-gcs-server"))
    names = ["-public-host", f"127.0.0.1:{port}", "-external-url", f"http://127.0.0.1:{port}"]
    listening = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    return [program, *listening, *names, "-backend", "memory", "-log-level", "error"]


def _gcs_settings(endpoint: str) -> dict[str, str]:
    return {"gcs.endpoint": endpoint, "gcs.anonymous": "true"}


def _make_gcs_bucket(settings: dict[str, str], name: str) -> None:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    where = {"api_endpoint": settings["gcs.endpoint"]}
    storage.Client(project="none", credentials=AnonymousCredentials(), client_options=where).create_bucket(name)


def _azurite(port: int, data: Path) -> list[str]:
    script = str(AZURITE.path("node_modules", "azurite", "dist", "src", "blob", "main.js"))
    listening = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    # A newer SDK uses versions of the protocol that Azurite does not know and would refuse.
    return ["node", script, *listening, "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]


def secure_azurite(certificate: Path, key: Path) -> EmulatorKind:
    """Azurite over TLS, which also accepts tokens of identities."""

    def command(port: int, data: Path) -> list[str]:
        return [*_azurite(port, data), "--oauth", "basic", "--cert", str(certificate), "--key", str(key)]

    return replace(KINDS["azure"], command=command, has_tls=True)


def _azure_settings(endpoint: str) -> dict[str, str]:
    return {
        "azure.endpoint": f"{endpoint}/{_AZURE_ACCOUNT}",
        "azure.account_name": _AZURE_ACCOUNT,
        "azure.account_key": _AZURE_KEY,
    }


def _make_azure_container(settings: dict[str, str], name: str) -> None:
    from azure.storage.blob import BlobServiceClient

    key = {"account_name": _AZURE_ACCOUNT, "account_key": _AZURE_KEY}
    BlobServiceClient(settings["azure.endpoint"], key).create_container(name)


def _dynamodb_local(port: int, data: Path) -> list[str]:
    jars = DYNAMODB_LOCAL.path()
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", f"-Djava.library.path={jars}", "-cp", f"{jars}/*"]
    return [*java, str(_LOOPBACK_DYNAMODB), "-inMemory", "-port", str(port), "-disableTelemetry"]


def _dynamodb_settings(endpoint: str) -> dict[str, str]:
    return {"s3.dynamodb_endpoint": endpoint, "s3.dynamodb_region": "us-east-1"}


def _make_dynamodb_table(settings: dict[str, str], name: str) -> None:
    """With the keys that other writers of Delta tables use."""
    boto3_client("dynamodb", settings["s3.dynamodb_endpoint"]).create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "tablePath", "KeyType": "HASH"}, {"AttributeName": "fileName", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "tablePath", "AttributeType": "S"},
            {"AttributeName": "fileName", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )


KINDS = {
    kind.name: kind
    for kind in (
        EmulatorKind("s3", "s3", _versitygw, _s3_settings, _make_s3_bucket),
        EmulatorKind("gcs", "gs", _fake_gcs, _gcs_settings, _make_gcs_bucket),
        EmulatorKind("azure", "az", _azurite, _azure_settings, _make_azure_container),
    )
}
"""Object stores, by the beginning of their options' names."""

DYNAMODB = EmulatorKind("dynamodb", "s3", _dynamodb_local, _dynamodb_settings, _make_dynamodb_table)
"""Decides commits of tables in S3; what it makes for a container is a table of DynamoDB's."""


def dynamodb_ledger_url(emulator: Emulator, endpoint: str | None = None, table: str | None = None) -> str:
    """The URL of a coordinator's ledger in a new table of DYNAMODB. endpoint: of a proxy before it. table: an existing one
    instead."""
    if table is None:
        table = f"t{uuid.uuid4().hex}"
        emulator.make_container(table)
    keys = f"access_key_id={_ACCESS_KEY}&secret_access_key={_SECRET_KEY}"
    return f"dynamodb://{table}?region=us-east-1&endpoint={quote(endpoint or emulator.endpoint, safe='')}&{keys}"
