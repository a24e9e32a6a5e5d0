"""The requests to a store, in the words of all three protocols.

    operations(proxy.exchanges, "s3://bucket/t")     # [Operation("LIST", "_delta_log"), Operation("GET", "_delta_log/0.json")]

Verbs are the same for all protocols, and paths are relative to the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.servers.cutting_proxy import Exchange, Request

_WHOLE = re.compile(r"bytes=0-[0-9]{10,}")  # Azure's SDK requests an object like this, whatever its size is
_GCS_OBJECT = re.compile(r"/(?:download/)?storage/v1/b/([^/]+)/o/([^/]+)")
_GCS_LISTING = re.compile(r"/storage/v1/b/([^/]+)/o")
_GCS_UPLOAD = re.compile(r"/upload/storage/v1/b/([^/]+)/o")


@dataclass(frozen=True)
class Operation:
    """verb: LIST, GET, RANGE (a part of an object), SIZE, PUT, PUT NEW, DELETE, UPLOAD (requests of an upload in parts). path:
    below the root of the table; for LIST the directory."""

    verb: str
    path: str


def operations(exchanges: Iterable[Exchange], root: str) -> list[Operation]:
    """Of requests below a root, in the order of their answers."""
    prefix = urlsplit(root).path.strip("/") + "/"
    store_operations = (operation_of(exchange.request) for exchange in exchanges)
    return [
        Operation(one.verb, one.path.removeprefix(prefix).rstrip("/")) for one in store_operations if one.path.startswith(prefix)
    ]


def operation_of(request: Request) -> Operation:
    """path: the complete key, or the prefix of a listing."""
    parts = urlsplit(request.target)
    query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    if "x-ms-version" in request.headers:
        return _of_azure(request, parts.path, query)
    if parts.path.startswith(("/storage/", "/download/", "/upload/")):
        return _of_gcs(request, parts.path, query)
    key = unquote(parts.path).partition("/")[2].partition("/")[2]
    if "list-type" in query:
        return Operation("LIST", query.get("prefix", ""))
    return Operation("UPLOAD" if "uploads" in query or "uploadId" in query else _verb(request), key)


def _of_azure(request: Request, path: str, query: dict[str, str]) -> Operation:
    if query.get("comp") == "list":
        return Operation("LIST", query.get("prefix", ""))
    key = unquote(path).split("/", 3)[-1]
    return Operation("UPLOAD" if query.get("comp") in ("block", "blocklist") else _verb(request), key)


def _of_gcs(request: Request, path: str, query: dict[str, str]) -> Operation:
    if _GCS_LISTING.fullmatch(path):
        return Operation("LIST", query.get("prefix", ""))
    if _GCS_UPLOAD.fullmatch(path):
        if query["uploadType"] == "resumable":
            return Operation("UPLOAD", query.get("name", ""))
        metadata = json.loads(re.search(rb"\{.*?\}", request.body)[0])  # type: ignore[index]
        return Operation("PUT NEW" if query.get("ifGenerationMatch") == "0" else "PUT", metadata["name"])
    match = _GCS_OBJECT.fullmatch(path)
    if match is None:
        return Operation(request.method, "")
    is_metadata = request.method == "GET" and query.get("alt") != "media"
    return Operation("SIZE" if is_metadata else _verb(request), unquote(match[2]))


def _verb(request: Request) -> str:
    match request.method:
        case "GET":
            span = request.headers.get("range") or request.headers.get("x-ms-range")
            return "GET" if span is None or _WHOLE.fullmatch(span) else "RANGE"
        case "PUT":
            return "PUT NEW" if "if-none-match" in request.headers else "PUT"
        case "HEAD":
            return "SIZE"
        case other:
            return other
