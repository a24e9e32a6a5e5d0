"""Credentials that the options do not name: the machine's identity, which the SDKs find by themselves and renew in time.

A separate process writes and reads each table. Its environment only has the variables that name the identity.
"""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient, ContainerSasPermissions, generate_container_sas
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from tests.storage.conftest import CONTAINER, new_url
from tests.support.servers.cutting_proxy import CuttingProxy, Request
from tests.support.servers.emulators import Emulator, running, secure_azurite, signed_headers
from tests.support.servers.identity_servers import IdentityServer
from tests.support.spark.spark_script import run_script

WORKLOAD = """
import json, sys
import pyarrow as pa
from delta_py import DeltaTable, write_delta
from delta_py.errors import DeltaError

url, options = sys.argv[1], json.loads(sys.argv[2])
try:
    for number in range(3):
        write_delta(url, pa.table({"id": [number]}), mode="append", storage_options=options)
    found = {"ids": sorted(DeltaTable(url, storage_options=options).to_arrow()["id"].to_pylist())}
except DeltaError as error:
    found = {"error": type(error).__name__, "message": str(error)}
print(json.dumps(found))
"""
OTHERS = ("AWS_", "AZURE_", "GOOGLE_", "GCE_", "IDENTITY_", "MSI_", "IMDS_", "CLOUDSDK_")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Sets variables, in an environment without other variables that SDKs check for credentials."""
    for name in list(os.environ):
        if name.startswith(OTHERS):
            monkeypatch.delenv(name)
    nothing = {"AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_CONFIG_FILE": "/dev/null", "HOME": str(tmp_path)}

    def set_variables(**variables: str) -> None:
        for name, value in {**nothing, **variables}.items():
            monkeypatch.setenv(name, value)

    return set_variables


def run(url: str, options: Mapping[str, str]) -> dict[str, Any]:
    result = run_script(WORKLOAD, url, json.dumps(options), timeout_seconds=120)
    del result["stderr"]
    return result


def without(settings: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in names}


# ---------------------------------------------------------------- S3


def without_session_token(request: Request) -> Request:
    """versitygw does not support temporary keys."""
    signed = ("authorization", "x-amz-security-token", "x-amz-date", "x-amz-content-sha256")
    unsigned_headers = {name: value for name, value in request.headers.items() if name not in signed}
    return replace(request, headers=signed_headers(request.method, request.target, unsigned_headers, request.body))


@pytest.mark.parametrize("of", ["machine", "container"])
def test_key_that_the_machine_tells_opens_s3(emulators: Callable[[str], Emulator], bare: Callable[..., None], of: str) -> None:
    emulator = emulators("s3")
    settings = emulator.settings()
    key = settings["s3.access_key_id"], settings["s3.secret_access_key"]
    with IdentityServer(key) as server, CuttingProxy(emulator.port, change=without_session_token) as proxy:
        if of == "machine":
            bare(AWS_EC2_METADATA_SERVICE_ENDPOINT=server.endpoint)
        else:
            place = f"{server.endpoint}/container"
            bare(AWS_CONTAINER_CREDENTIALS_FULL_URI=place, AWS_CONTAINER_AUTHORIZATION_TOKEN="from-the-agent")
        result = run(new_url(emulator), without(emulator.settings(proxy.endpoint), "s3.access_key_id", "s3.secret_access_key"))
    assert result == {"ids": [0, 1, 2]}
    sent = [exchange.request.headers.get("x-amz-security-token") for exchange in proxy.exchanges]
    assert len(sent) > 10 and set(sent) <= set(server.told)
    if of == "container":  # boto3 treats the machine's keys as valid somewhat longer than their expiry says
        assert len(set(sent)) > 5, "a key that runs out in minutes is asked for again"


def test_profile_of_shared_files_opens_s3(
    emulators: Callable[[str], Emulator], bare: Callable[..., None], tmp_path: Path
) -> None:
    emulator, file = emulators("s3"), tmp_path / "credentials"
    settings = emulator.settings()
    key, secret = "s3.access_key_id", "s3.secret_access_key"
    file.write_text(f"[tables]\naws_access_key_id = {settings[key]}\naws_secret_access_key = {settings[secret]}\n")
    bare(AWS_SHARED_CREDENTIALS_FILE=str(file))
    assert run(new_url(emulator), without(settings, key, secret) | {"s3.profile": "tables"}) == {"ids": [0, 1, 2]}


# ---------------------------------------------------------------- Google


@pytest.mark.parametrize("key_form", ["file", "json"])
def test_key_of_a_service_account_is_given_for_tokens(
    emulators: Callable[[str], Emulator], bare: Callable[..., None], tmp_path: Path, key_form: str
) -> None:
    emulator, file = emulators("gcs"), tmp_path / "key.json"
    private = rsa.generate_private_key(65_537, 2048)
    forms = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    with IdentityServer(life_seconds=60) as server, CuttingProxy(emulator.port) as proxy:
        account = {
            "type": "service_account",
            "client_email": "tables@project.iam.gserviceaccount.com",
            "private_key": private.private_bytes(*forms).decode(),
            "private_key_id": "1",
            "token_uri": f"{server.endpoint}/google-token",
        }
        file.write_text(json.dumps(account))
        bare(NO_PROXY="127.0.0.1")
        named = {f"gcs.service_account_{key_form}": str(file) if key_form == "file" else json.dumps(account)}
        result = run(new_url(emulator), without(emulator.settings(proxy.endpoint), "gcs.anonymous") | named)
    assert result == {"ids": [0, 1, 2]}
    sent = {exchange.request.headers.get("authorization") for exchange in proxy.exchanges}
    assert len(sent) > 5 and sent <= {f"Bearer {token}" for token in server.told}


def test_token_that_the_machine_tells_opens_gcs(emulators: Callable[[str], Emulator], bare: Callable[..., None]) -> None:
    emulator = emulators("gcs")
    with IdentityServer(life_seconds=60) as server, CuttingProxy(emulator.port) as proxy:
        bare(GCE_METADATA_HOST=server.host, GCE_METADATA_IP=server.host, NO_PROXY="127.0.0.1")
        result = run(new_url(emulator), without(emulator.settings(proxy.endpoint), "gcs.anonymous"))
    assert result == {"ids": [0, 1, 2]}
    sent = [exchange.request.headers.get("authorization") for exchange in proxy.exchanges]
    assert len(sent) > 10 and set(sent) <= {f"Bearer {token}" for token in server.told}
    assert len(set(sent)) > 5, "a token that runs out in minutes is asked for again"


# ---------------------------------------------------------------- Azure


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Emulator, Path]]:
    """Over TLS, because tokens are sent in no other way; and the certificate to trust."""
    place = tmp_path_factory.mktemp("tls")
    certificate, key = place / "certificate.pem", place / "key.pem"
    make_certificate(certificate, key)
    with running(secure_azurite(certificate, key)) as emulator:
        settings = emulator.settings()
        named = {"account_name": settings["azure.account_name"], "account_key": settings["azure.account_key"]}
        BlobServiceClient(settings["azure.endpoint"], named, connection_verify=str(certificate)).create_container(CONTAINER)
        yield emulator, certificate


def make_certificate(certificate: Path, key: Path) -> None:
    """For 127.0.0.1, valid for a day, self-signed."""
    private, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pydelta tests")])
    number, end = x509.random_serial_number(), now + dt.timedelta(days=1)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, private.public_key(), number, now, end)
    builder = builder.add_extension(here, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    certificate.write_bytes(builder.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    forms = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key.write_bytes(private.private_bytes(*forms))


def azure_token(number: int) -> str:
    """A token that Azurite accepts: it checks times, issuer and audience, and not the signature."""
    now = int(time.time())
    times = {"iat": now, "nbf": now, "exp": now + 600}
    claims = {"aud": "https://storage.azure.com", "iss": "https://sts.windows.net/tenant/", **times}
    parts = (json.dumps(part).encode() for part in ({"alg": "none", "typ": "JWT"}, {**claims, "number": number}))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + ".c2lnbmF0dXJl"


SERVICES: dict[str, Callable[[IdentityServer], dict[str, str]]] = {
    "machine": lambda server: {"AZURE_POD_IDENTITY_AUTHORITY_HOST": server.endpoint},
    "App Service": lambda server: {"IDENTITY_ENDPOINT": f"{server.endpoint}/app-service", "IDENTITY_HEADER": "from-the-service"},
}


@pytest.mark.parametrize("client_id", [None, "one-of-several"])
@pytest.mark.parametrize("of", SERVICES)
def test_managed_identity_opens_azure(
    azurite: tuple[Emulator, Path], bare: Callable[..., None], of: str, client_id: str | None
) -> None:
    emulator, certificate = azurite
    with IdentityServer(token_of=azure_token) as server:
        bare(REQUESTS_CA_BUNDLE=str(certificate), **SERVICES[of](server))
        chosen = {} if client_id is None else {"azure.client_id": client_id}
        settings = without(emulator.settings(), "azure.account_key") | {"azure.managed_identity": "true", **chosen}
        assert run(new_url(emulator), settings) == {"ids": [0, 1, 2]}
    queries = [one.query for one in server.asked if "resource" in one.query]
    assert {query["resource"] for query in queries} == {"https://storage.azure.com"}
    assert {query.get("client_id") for query in queries} == {client_id}
    assert len(server.told) > 3, "a token that runs out in minutes is asked for again"


def test_machine_without_identity_is_told_at_once_what_to_do(azurite: tuple[Emulator, Path], bare: Callable[..., None]) -> None:
    emulator, certificate = azurite
    with IdentityServer(refusal=(400, "invalid_request")) as server:
        bare(REQUESTS_CA_BUNDLE=str(certificate), AZURE_POD_IDENTITY_AUTHORITY_HOST=server.endpoint)
        settings = without(emulator.settings(), "azure.account_key") | {"azure.managed_identity": "true"}
        begin = time.monotonic()
        result = run(new_url(emulator), settings)
    assert result["error"] == "StorageError" and "Give one of the options azure.account_key" in result["message"]
    assert time.monotonic() - begin < 30


def test_token_is_not_sent_without_tls(emulators: Callable[[str], Emulator], bare: Callable[..., None]) -> None:
    emulator = emulators("azure")
    with IdentityServer(token_of=azure_token) as server:
        bare(AZURE_POD_IDENTITY_AUTHORITY_HOST=server.endpoint)
        settings = without(emulator.settings(), "azure.account_key") | {"azure.managed_identity": "true"}
        result = run(new_url(emulator), settings)
    assert result["error"] == "StorageError" and "only supported with HTTPS" in result["message"]


def test_connection_string_opens_azure(emulators: Callable[[str], Emulator], bare: Callable[..., None]) -> None:
    emulator = emulators("azure")
    settings = emulator.settings()
    account, key, endpoint = (settings[f"azure.{name}"] for name in ("account_name", "account_key", "endpoint"))
    text = f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={key};BlobEndpoint={endpoint};"
    bare()
    assert run(new_url(emulator), {"azure.connection_string": text}) == {"ids": [0, 1, 2]}


def test_sas_token_of_a_container_opens_azure(emulators: Callable[[str], Emulator], bare: Callable[..., None]) -> None:
    emulator = emulators("azure")
    settings = emulator.settings()
    token = generate_container_sas(
        settings["azure.account_name"],
        CONTAINER,
        account_key=settings["azure.account_key"],
        permission=ContainerSasPermissions(read=True, write=True, list=True, delete=True, create=True, add=True),
        expiry=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1),
    )
    bare()
    with CuttingProxy(emulator.port) as proxy:
        sas_settings = without(emulator.settings(proxy.endpoint), "azure.account_key") | {"azure.sas_token": f"?{token}"}
        assert run(new_url(emulator), sas_settings) == {"ids": [0, 1, 2]}
    assert all("sig=" in exchange.request.target for exchange in proxy.exchanges)
