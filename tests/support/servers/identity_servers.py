"""The services that tell a program on a cloud's machine its identity, simulated on this machine: the metadata services of AWS (of
machines and of containers), Azure (of machines and of App Service) and Google.

    with IdentityServer(key, token_of) as server:
        os.environ["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server.endpoint       # the SDKs read their own variables
        ...
        server.asked                                                            # path and headers of each request

Each answer has another token, so the requests to a store show which answer they used.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

ROLE = "reader-of-tables"
SESSION_OF_MACHINE = "session-of-this-machine"


@dataclass(frozen=True)
class Asked:
    """query: the last value of each name. headers: by lower-case name."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


class IdentityServer:
    """key: access key and secret from AWS's services. token_of: returns the n-th token of Azure's and Google's services.
    life_seconds: of keys and tokens. SDKs renew them minutes before the end. refusal: Azure's answer instead, as status and
    error."""

    def __init__(
        self,
        key: tuple[str, str] = ("", ""),
        token_of: Callable[[int], str] = "token-{}".format,
        *,
        life_seconds: int = 120,
        refusal: tuple[int, str] | None = None,
    ) -> None:
        self.key, self.token_of, self.life_seconds, self.refusal = key, token_of, life_seconds, refusal
        self.asked: list[Asked] = []
        self.told: list[str] = []
        self._numbers = itertools.count()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"identities": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # ------------------------------------------------------------ answers

    def answer(self, request: Asked) -> tuple[int, str | dict[str, Any]]:
        """Status, and text or JSON."""
        self.asked.append(request)
        headers = request.headers
        match request.method, request.path:
            case "PUT", "/latest/api/token":
                return 200, SESSION_OF_MACHINE
            case "GET", "/latest/meta-data/iam/security-credentials/" if self._knows_session(headers):
                return 200, ROLE
            case "GET", path if path == f"/latest/meta-data/iam/security-credentials/{ROLE}" and self._knows_session(headers):
                return 200, {"Code": "Success", "Type": "AWS-HMAC", **self._key_of_aws()}
            case "GET", "/container":
                return (200, self._key_of_aws()) if headers.get("authorization") == "from-the-agent" else (403, "")
            case "POST", "/google-token":
                return 200, self._token_of_google()
            case "GET", "/metadata/identity/oauth2/token" if headers.get("metadata") == "true":
                return self._token_of_azure(request)
            case "GET", "/app-service" if headers.get("x-identity-header") == "from-the-service":
                return self._token_of_azure(request)
        if request.method == "GET" and headers.get("metadata-flavor") == "Google":
            return self._answer_of_google(request.path)
        return 404, ""

    @staticmethod
    def _knows_session(headers: Mapping[str, str]) -> bool:
        return headers.get("x-aws-ec2-metadata-token") == SESSION_OF_MACHINE

    def _token(self) -> str:
        self.told.append(self.token_of(next(self._numbers)))
        return self.told[-1]

    def _key_of_aws(self) -> dict[str, str]:
        end = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=self.life_seconds)
        expiration = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"AccessKeyId": self.key[0], "SecretAccessKey": self.key[1], "Token": self._token(), "Expiration": expiration}

    def _token_of_azure(self, request: Asked) -> tuple[int, dict[str, Any]]:
        if self.refusal is not None:
            return self.refusal[0], {"error": self.refusal[1], "error_description": self.refusal[1]}
        end = int(dt.datetime.now(dt.UTC).timestamp()) + self.life_seconds
        life = {"expires_in": str(self.life_seconds), "expires_on": str(end)}
        return 200, {"access_token": self._token(), "token_type": "Bearer", "resource": request.query["resource"], **life}

    def _token_of_google(self) -> dict[str, Any]:
        return {"access_token": self._token(), "expires_in": self.life_seconds, "token_type": "Bearer"}

    def _answer_of_google(self, path: str) -> tuple[int, str | dict[str, Any]]:
        account = "/computeMetadata/v1/instance/service-accounts/"
        if path.startswith(account) and path.endswith("/token"):
            return 200, self._token_of_google()
        if path.startswith(account):
            return 200, {"email": "tables@project.iam.gserviceaccount.com", "scopes": [], "aliases": ["default"]}
        if path == "/computeMetadata/v1/project/project-id":
            return 200, "project"
        if path == "/computeMetadata/v1/universe/universe-domain":
            return 200, "googleapis.com"
        return (200, "") if path in ("", "/") else (404, "")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    identities: IdentityServer

    def handle_any(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, content = self.identities.answer(Asked(self.command, url.path, query, headers))
        kind = "text/plain" if isinstance(content, str) else "application/json"
        body = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), "Metadata-Flavor": "Google"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = handle_any

    def log_message(self, format: str, *args: object) -> None:
        """`asked` has it."""
