"""A Unity Catalog server on this machine, with the part of its REST API that clients of Delta tables use.

    with UnityCatalogServer(tmp_path) as server:
        DeltaTable(server.table_url("t"), storage_options={"unity.token": server.token})
        server.fail("POST", "/tables/t", Failure.LOST_ANSWER)

It keeps the contract of version 0.6.0: tests/unit/unity/test_recorded_calls.py compares it with recorded calls of such a server.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.servers.token_exchange import EXCHANGE_PATH, TokenExchange
from tests.support.servers.unity_schemas import Refusal, SchemaPages

BASE = "/api/2.1/unity-catalog"
MOST_UNPUBLISHED = 10
READER_FEATURES = ["catalogManaged", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors"]
PROTOCOL = {
    "min-reader-version": 3,
    "min-writer-version": 7,
    "reader-features": READER_FEATURES,
    "writer-features": [*READER_FEATURES, "inCommitTimestamp"],
}
PROPERTIES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.enableDeletionVectors": "true",
}
SUGGESTED_PROPERTIES = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": None,
    "delta.columnMapping.maxColumnId": None,
    "delta.randomizeFilePrefixes": "true",
    "delta.parquet.compression.codec": "zstd",
    "delta.rowTracking.materializedRowCommitVersionColumnName": None,
    "delta.columnMapping.mode": "name",
}
DOMAINS = ("delta.clustering", "delta.rowTracking")


class Failure(Enum):
    """What happens to one request instead of an answer."""

    LOST_REQUEST = "the connection ends before the request was carried out"
    LOST_ANSWER = "the connection ends after the request was carried out"
    UNKNOWN = "500 CommitStateUnknownException after the request was carried out"
    THROTTLED = "429 TooManyRequestsException, nothing was carried out"
    FORBIDDEN = "403 PermissionDeniedException, nothing was carried out"
    REDIRECT = "302 to another server"
    NO_JSON = "200 with a page of HTML"
    LONG = "200 with an answer that never ends"
    SLOW = "no answer for a while"


def invalid(message: str) -> Refusal:
    return Refusal(400, "InvalidParameterValueException", message)


@dataclass
class CatalogTable:
    table_id: str
    kind: str
    location: str
    columns: dict[str, Any]
    partition_columns: list[str]
    protocol: dict[str, Any]
    properties: dict[str, str]
    comment: str | None = None
    latest: int = 0
    published: int = 0
    commits: dict[int, dict[str, Any]] = field(default_factory=dict)
    last: tuple[int, int] = (0, 0)
    allowed: list[str] = field(default_factory=list)

    @property
    def unpublished(self) -> list[int]:
        return [version for version in self.commits if version > self.published]

    def answer(self) -> dict[str, Any]:
        features = {*self.protocol.get("reader-features", []), *self.protocol.get("writer-features", [])}
        version, timestamp = self.last
        derived = {
            "delta.minReaderVersion": str(self.protocol["min-reader-version"]),
            "delta.minWriterVersion": str(self.protocol["min-writer-version"]),
            "delta.lastUpdateVersion": str(version),
            "delta.lastCommitTimestamp": str(timestamp),
            **{f"delta.feature.{name}": "supported" for name in features},
        }
        metadata = {
            "etag": f"etag-{timestamp}",
            "table-type": self.kind,
            "table-uuid": self.table_id,
            "location": self.location,
            "columns": self.columns,
            "partition-columns": self.partition_columns,
            "properties": {**self.properties, **derived},
            "last-commit-version": version,
            "last-commit-timestamp-ms": timestamp,
            **({} if self.comment is None else {"comment": self.comment}),
        }
        if self.kind == "EXTERNAL":
            return {"metadata": metadata}
        commits = [self.commits[version] for version in sorted(self.unpublished, reverse=True)]
        allowed = {"allowed-maintenance-operations": self.allowed} if self.allowed else {}  # since version 0.7.0
        return {"metadata": metadata, "commits": commits, "latest-table-version": self.latest, **allowed}


class Catalog(SchemaPages):
    """The server's state. ids: of the next tables; new ones after these."""

    def __init__(self, root: str, ids: list[str] | None = None) -> None:
        self.root, self.ids = root, list(ids or [])
        self.schemas = {("uc", "s")}
        self.tables: dict[tuple[str, str, str], CatalogTable] = {}
        self.staging: dict[str, str] = {}  # location -> table id
        self.credentials: list[dict[str, Any]] | None = None
        self.lock = threading.RLock()

    def table(self, name: tuple[str, str, str]) -> CatalogTable:
        catalog, schema, _table = name
        if catalog not in {known for known, _ in self.schemas}:
            raise Refusal(404, "NoSuchCatalogException", f"Catalog not found: {catalog}")
        if (catalog, schema) not in self.schemas:
            raise Refusal(404, "NoSuchSchemaException", f"Schema not found: {catalog}.{schema}")
        if name not in self.tables:
            raise Refusal(404, "NoSuchTableException", f"Table not found: {'.'.join(name)}")
        return self.tables[name]

    # ------------------------------------------------------------ creation

    def stage(self) -> dict[str, Any]:
        table_id = self.ids.pop(0) if self.ids else str(uuid.uuid4())
        location = f"{self.root}/tables/{table_id}"
        self.staging[location] = table_id
        return {
            "table-id": table_id,
            "table-type": "MANAGED",
            "location": location,
            "storage-credentials": self.vended(location, "READ_WRITE"),
            "required-protocol": PROTOCOL,
            "suggested-protocol": {
                "reader-features": ["columnMapping"],
                "writer-features": ["columnMapping", "domainMetadata", "rowTracking"],
            },
            "required-properties": {**PROPERTIES, "io.unitycatalog.tableId": table_id},
            "suggested-properties": SUGGESTED_PROPERTIES,
        }

    def staged_location(self, table_id: str) -> str:
        for location, staged_id in self.staging.items():
            if staged_id == table_id:
                return location
        raise Refusal(404, "NoSuchTableException", f"Staging table not found: {table_id}")

    def create(self, schema: tuple[str, str], body: dict[str, Any]) -> dict[str, Any]:
        name = (*schema, body["name"])
        check_type(body["columns"])
        if name in self.tables:
            raise Refusal(409, "AlreadyExistsException", f"Table already exists: {'.'.join(name)}")
        kind, location, properties = body["table-type"], body["location"], dict(body.get("properties") or {})
        table_id = str(uuid.uuid4())
        if kind == "MANAGED":
            if location not in self.staging:
                raise invalid(f"Staging table not found: {location}")
            table_id = self.staging[location]
            check_features(body["protocol"])
            for key, value in {**PROPERTIES, "io.unitycatalog.tableId": table_id}.items():
                if properties.get(key) != value:
                    raise invalid(f"MANAGED table missing required property '{key}'.")
            del self.staging[location]
        table = CatalogTable(
            table_id, kind, location, body["columns"], list(body.get("partition-columns") or []), body["protocol"], properties
        )
        table.comment, table.last = body.get("comment"), (0, body["last-commit-timestamp-ms"])
        self.tables[name] = table
        return table.answer()

    def vended(self, location: str, operation: str) -> list[dict[str, Any]]:
        if self.credentials is not None:
            return self.credentials
        return [{"prefix": location, "operation": operation, "config": {}, "expiration-time-ms": None}]

    # ------------------------------------------------------------ changes

    def update(self, name: tuple[str, str, str], body: Mapping[str, Any]) -> dict[str, Any]:
        table = self.table(name)
        for requirement in body.get("requirements", []):
            if requirement["type"] == "assert-table-uuid" and requirement["uuid"] != table.table_id:
                text = f"assert-table-uuid failed: expected {requirement['uuid']} but table has {table.table_id}"
                raise Refusal(409, "UpdateRequirementConflictException", text)
        updates = {update["action"]: update for update in body.get("updates", [])}
        if not updates:
            raise invalid("At least one update is required.")
        if len(updates) < len(body["updates"]):
            raise invalid("At most one add-commit is allowed per request.")
        self._check_metadata(table, updates)
        published = updates.get("set-latest-backfilled-version", {}).get("latest-published-version")
        is_new = self._check_commit(table, updates.get("add-commit"), published)
        if published is not None:
            self._publish(table, published, has_commit="add-commit" in updates)
        if is_new and len(table.unpublished) >= MOST_UNPUBLISHED:
            raise Refusal(429, "ResourceExhaustedException", f"Max number of commits per table reached: {table.table_id}")
        if is_new:
            commit = updates["add-commit"]["commit"]
            table.commits[commit["version"]], table.latest = commit, commit["version"]
        self._apply_metadata(table, updates)
        return table.answer()

    def _check_commit(self, table: CatalogTable, update: Mapping[str, Any] | None, published: int | None) -> bool:
        """Whether the commit becomes a new version; not if it is one already, under the same file name."""
        if update is None:
            return False
        if table.kind != "MANAGED":
            raise invalid("add-commit and set-latest-backfilled-version require a MANAGED Delta table.")
        commit, latest = update["commit"], table.latest
        version = commit["version"]
        if version in table.unpublished and table.commits[version]["file-name"] == commit["file-name"]:
            return False
        if version <= latest:
            raise Refusal(
                409,
                "CommitVersionConflictException",
                f"Commit version already accepted. Current table version is {latest}",
            )
        if latest > 0 and version > latest + 1:
            raise invalid(f"Commit version must be the next version after the latest commit {latest}, but got {version}")
        if published is not None and published > latest:
            text = f"Latest backfilled version {published} cannot be greater than the last commit version = {latest}"
            raise invalid(text)
        return True

    def _publish(self, table: CatalogTable, published: int, *, has_commit: bool) -> None:
        if not has_commit and published > table.latest:
            raise invalid(f"Should not backfill version {published} while the last version committed is {table.latest}")
        table.published = max(table.published, published)
        table.commits = {version: commit for version, commit in table.commits.items() if version > table.published}

    def _check_metadata(self, table: CatalogTable, updates: Mapping[str, Any]) -> None:
        if "set-columns" in updates:
            check_type(updates["set-columns"]["columns"])
        if "set-protocol" in updates and table.kind == "MANAGED":
            check_features(updates["set-protocol"]["protocol"])
        for domain in updates.get("set-domain-metadata", {}).get("updates", {}):
            if domain not in DOMAINS:
                raise invalid(f'failed to parse a JSON document: UnrecognizedPropertyException: Unrecognized field "{domain}"')
            needed = "clustering" if domain == "delta.clustering" else "rowTracking"
            protocol = updates.get("set-protocol", {}).get("protocol", table.protocol)
            if needed not in protocol.get("writer-features", []):
                raise invalid(f"domain-metadata.{domain} requires the '{needed}' writer feature.")

    def _apply_metadata(self, table: CatalogTable, updates: Mapping[str, Any]) -> None:
        for action, update in updates.items():
            match action:
                case "set-columns":
                    table.columns = update["columns"]
                case "set-partition-columns":
                    table.partition_columns = update["partition-columns"]
                case "set-properties":
                    table.properties |= update["updates"]
                case "remove-properties":
                    table.properties = {key: value for key, value in table.properties.items() if key not in update["removals"]}
                case "set-protocol":
                    table.protocol = update["protocol"]
                case "set-table-comment":
                    table.comment = update["comment"]
                case "update-metadata-snapshot-version":
                    table.last = update["last-commit-version"], update["last-commit-timestamp-ms"]


def check_type(data_type: Any) -> None:
    """Refuse the spelling of Delta's schemaString, which is another one."""
    if isinstance(data_type, dict):
        for key, value in data_type.items():
            if key in ("elementType", "containsNull", "keyType", "valueType", "valueContainsNull"):
                text = f'failed to parse a JSON document: UnrecognizedPropertyException: Unrecognized field "{key}"'
                raise invalid(text)
            if key != "metadata":
                check_type(value)
    elif isinstance(data_type, list):
        for item in data_type:
            check_type(item)


def check_features(protocol: Mapping[str, Any]) -> None:
    for side in ("reader", "writer"):
        for feature in PROTOCOL[f"{side}-features"]:
            if feature not in protocol.get(f"{side}-features", []):
                raise invalid(f"MANAGED table missing required {side}-feature '{feature}'.")


@dataclass
class _Planned:
    method: str
    path: str
    failure: Failure


class UnityCatalogServer(TokenExchange):
    """directory: where its managed tables are. state: of an earlier server, which was stopped. token: None for a server without
    authorization. requests: method and path of each request, and connections, for counting them."""

    def __init__(self, directory: Path, state: Catalog | None = None, *, token: str | None = "secret-token-of-uc") -> None:
        self.state = state or Catalog(f"file://{directory}")
        super().__init__(token)
        self.requests: list[str] = []
        self.authorizations: list[str | None] = []
        self.connections: list[socket.socket] = []
        self.forbidden: set[str] = set()  # operations of credentials that are refused
        self._planned: list[_Planned] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"catalog_server": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self.close_connections()

    def close_connections(self) -> None:
        """As a server does after a while."""
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def uri(self) -> str:
        return f"http://{self.host}"

    @property
    def options(self) -> dict[str, str]:
        return {} if self.token is None else {"unity.token": self.token}

    def table_url(self, table: str, catalog: str = "uc") -> str:
        return f"unity://{self.host}/{catalog}.s.{table}"

    def fail(self, method: str, path: str, *failures: Failure) -> None:
        """The next requests whose path contains `path` fail, one for each failure."""
        self._planned += [_Planned(method, path, failure) for failure in failures]

    def planned(self, method: str, path: str) -> Failure | None:
        with self.state.lock:
            for entry in self._planned:
                if entry.method == method and entry.path in path:
                    self._planned.remove(entry)
                    return entry.failure
        return None

    # ------------------------------------------------------------ answers

    def answer(self, method: str, target: str, authorization: str | None, body: Any) -> tuple[int, Any]:
        parts = urlsplit(target)
        self.requests.append(f"{method} {parts.path}")
        self.authorizations.append(authorization)
        if self.token is not None and authorization != f"Bearer {self.token}":
            details = [{"reason": "UNAUTHENTICATED", "@type": "google.rpc.ErrorInfo"}]
            return 401, {"error_code": "UNAUTHENTICATED", "details": details, "message": "Invalid access token"}
        path = [unquote(part) for part in parts.path.removeprefix(BASE).strip("/").split("/")]
        try:
            with self.state.lock:
                return self._carried_out(method, path, dict(parse_qsl(parts.query)), body)
        except Refusal as refusal:
            return refusal.status, refusal.form()

    def _carried_out(self, method: str, path: list[str], query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        state = self.state
        match method, path:
            case "GET", ["schemas"] | ["tables"]:
                return 200, state.page(path[0], query)
            case "POST", ["schemas"]:
                return 200, state.create_schema(body)
            case "GET", ["schemas", name]:
                return 200, state.schema(name)
            case "DELETE", ["schemas", name]:
                return 200, state.drop_schema(name, with_tables=query.get("force") == "true")
            case "GET", ["delta", "v1", "config"]:
                return 200, {"endpoints": [], "protocol-version": "1.0"}
            case "POST", ["delta", "v1", "catalogs", _, "schemas", _, "staging-tables"]:
                return 200, state.stage()
            case "GET", ["delta", "v1", "staging-tables", table_id, "credentials"]:
                return 200, {"storage-credentials": state.vended(state.staged_location(table_id), "READ_WRITE")}
            case "GET", ["delta", "v1", "temporary-path-credentials"]:
                return 200, {"storage-credentials": self._path_credentials(query["location"], query["operation"])}
            case "POST", ["delta", "v1", "catalogs", catalog, "schemas", schema, "tables"]:
                return 200, state.create((catalog, schema), body)
            case "GET", ["delta", "v1", "catalogs", catalog, "schemas", schema, "tables", table]:
                return 200, state.table((catalog, schema, table)).answer()
            case "POST", ["delta", "v1", "catalogs", catalog, "schemas", schema, "tables", table]:
                return 200, state.update((catalog, schema, table), body)
            case "DELETE", ["delta", "v1", "catalogs", catalog, "schemas", schema, "tables", table]:
                state.table((catalog, schema, table))
                del state.tables[catalog, schema, table]
                return 204, None
            case "POST", ["delta", "v1", "catalogs", catalog, "schemas", schema, "tables", table, "rename"]:
                state.tables[catalog, schema, body["new-name"]] = state.table((catalog, schema, table))
                del state.tables[catalog, schema, table]
                return 204, None
            case "POST", ["delta", "v1", "catalogs", _, "schemas", _, "tables", _, "metrics"]:
                return 204, None
            case "GET", ["delta", "v1", "catalogs", catalog, "schemas", schema, "tables", table, "credentials"]:
                return 200, self._credentials(state.table((catalog, schema, table)), query["operation"])
        return 404, "no such page"

    def _path_credentials(self, location: str, operation: str) -> list[dict[str, Any]]:
        if operation in self.forbidden:
            raise Refusal(403, "PermissionDeniedException", f"no {operation} for you")
        return self.state.vended(location, operation)

    def _credentials(self, table: CatalogTable, operation: str) -> dict[str, Any]:
        if operation not in ("READ", "READ_WRITE"):
            raise invalid(f"unknown enum value: {operation} (expected: [READ, READ_WRITE])")
        if operation in self.forbidden:
            raise Refusal(403, "PermissionDeniedException", f"no {operation} for you")
        return {"storage-credentials": self.state.vended(table.location, operation)}


class _Handler(BaseHTTPRequestHandler):
    catalog_server: UnityCatalogServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.catalog_server.connections.append(self.connection)

    def _handle(self) -> None:
        server, length = self.catalog_server, int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        if self.path == EXCHANGE_PATH:
            return self._send(*server.exchange(dict(parse_qsl(data.decode()))))
        body = json.loads(data) if length else None
        failure = server.planned(self.command, self.path)
        match failure:
            case Failure.LOST_REQUEST:
                return self._cut()
            case Failure.THROTTLED:
                return self._send(429, {"error": {"message": "slow down", "type": "TooManyRequestsException", "code": 429}})
            case Failure.FORBIDDEN:
                return self._send(403, {"error": {"message": "not you", "type": "PermissionDeniedException", "code": 403}})
            case Failure.REDIRECT:
                self.send_response(302)
                self.send_header("Location", f"http://localhost:{server.host.partition(':')[2]}{self.path}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return None
            case Failure.NO_JSON:
                return self._send(200, "<html>Sign in</html>")
            case Failure.LONG:
                return self._send_without_end()
            case Failure.SLOW:
                time.sleep(1)
        status, answer = server.answer(self.command, self.path, self.headers.get("Authorization"), body)
        if failure is Failure.LOST_ANSWER:
            return self._cut()
        if failure is Failure.UNKNOWN:
            status, answer = 500, {"error": {"message": "unknown", "type": "CommitStateUnknownException", "code": 500}}
        return self._send(status, answer)

    do_GET = do_POST = do_DELETE = do_HEAD = _handle

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.close()

    def _send(self, status: int, answer: Any) -> None:
        data = b"" if answer is None else answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # a client that does not wait has closed it
            self.wfile.write(data)

    def _send_without_end(self) -> None:
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(ConnectionError):
            while True:
                self.wfile.write(b" " * 100_000)

    def log_message(self, format: str, *args: Any) -> None:
        pass
