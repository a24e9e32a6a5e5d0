"""URLs of Unity Catalog servers, and names of tables in them.

    table_of("unity://catalog.example.com/main.sales.orders", options)
    table_of("uc://main.sales.orders", {"unity.uri": "https://catalog.example.com"})

A token is sent to the server, so its URL begins with https, except for a server on this machine. Parts of a name may be in
backticks, and may be percent-encoded: `unity://host/main.sales.`a.b``, `unity://host/main.sales.a%2Fb`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, unquote, urlsplit

from delta_py.errors import InvalidOptionError, shown
from delta_py.types.names import joined_name, split_name

URI_OPTION, TOKEN_OPTION = "unity.uri", "unity.token"
CLIENT_OPTIONS = ("unity.oauth_uri", "unity.client_id", "unity.client_secret")
SUBJECT_OPTIONS = ("unity.subject_token", "unity.subject_token_file")
TOKEN_OPTIONS = (TOKEN_OPTION, *CLIENT_OPTIONS, *SUBJECT_OPTIONS)
HOST_VARIABLE, TOKEN_VARIABLE = "DATABRICKS_HOST", "DATABRICKS_TOKEN"
"""Environment variables of Databricks' tools. The token is for that host alone."""

_API_PATH = "/api/2.1/unity-catalog"
_LONGEST_NAME = 1_000


@dataclass(frozen=True, slots=True)
class CatalogTableName:
    """server: its URL, without the path of the API. parts: catalog, schema, table; case matters."""

    server: str
    parts: tuple[str, str, str]

    @property
    def text(self) -> str:
        """The name as in SQL."""
        return joined_name(self.parts)

    @property
    def shown(self) -> str:
        """For messages."""
        return f"unity://{self.server.partition('://')[2]}/{self.text}"


def table_of(url: str, options: Mapping[str, str]) -> CatalogTableName:
    """Raises InvalidOptionError for a URL that names no table of a server, and as server_url."""
    server, parts = named_parts(url, options)
    if len(parts) != 3:
        raise _unusable(url, "Write catalog.schema.table, with backticks around a part that contains a dot.")
    catalog, schema, table = parts
    return CatalogTableName(server, (catalog, schema, table))


def named_parts(url: str, options: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The server of a URL, and the parts of the name in it, which may be that of a catalog or of a schema. Raises as table_of."""
    scheme, _, rest = url.partition("://")
    if scheme.lower() == "uc":
        server, name = options.get(URI_OPTION) or os.environ.get(HOST_VARIABLE, ""), rest
        if not server:
            raise _unusable(
                url, f"It names no server. Give the option {URI_OPTION} with the server's URL, or write unity://host/{rest}."
            )
    else:
        host, _, name = rest.partition("/")
        server = f"{'http' if _is_loopback(_host_of(host, url)) else 'https'}://{host}"
    return server_url(server), _parts(name, url)


def url_of(parts: Sequence[str]) -> str:
    """The URL without a server of a catalog, a schema or a table. Nothing in a part counts as a version, a dot or a backtick."""
    return f"uc://{'.'.join(map(_encoded, parts))}"


def _encoded(part: str) -> str:
    """As java/catalog/UnityCatalog.java does it."""
    return quote(part, safe="").replace(".", "%2E").replace("~", "%7E")


def server_url(text: str) -> str:
    """The URL of a server, without the path of its API. Raises InvalidOptionError if it is not the URL of a server, contains a
    password, or would send a token unencrypted over a network."""
    text = text if "://" in text else f"https://{text}"
    parts = _split(text)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
        raise _no_server(text, "Write https://host.")
    if "@" in parts.netloc:
        raise _no_server("...", "Credentials in URLs end up in logs: give the option unity.token.")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise _no_server(text, "It would send the token unencrypted. Use https; http is for servers on this machine.")
    if any(character <= " " or character >= "\x7f" for character in text):
        raise _no_server(text, "It contains characters that no URL can contain.")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix(_API_PATH)}"


def is_local(server: str) -> bool:
    """Whether a server, by its URL, is on this machine."""
    return _is_loopback(urlsplit(server).hostname or "")


def _parts(name: str, url: str) -> tuple[str, ...]:
    # Backticks and dots separate parts, so each part is decoded after the name was split.
    parts = tuple(unquote(part) for part in split_name(name.rstrip("/")))
    if not all(parts) or len(name) > _LONGEST_NAME or not "".join(parts).isprintable():
        raise _unusable(url, "No table can have that name. Write catalog.schema.table.")
    return parts


def _host_of(netloc: str, url: str) -> str:
    parts = _split(f"https://{netloc}")
    if not parts.hostname or "@" in netloc:
        raise _unusable(url if "@" not in netloc else f"unity://...@{netloc.rpartition('@')[2]}", "Write unity://host/c.s.t.")
    return parts.hostname


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # it is parsed when it is first read
    except ValueError as error:
        raise _no_server(url, f"It is no URL: {error}.") from error
    return parts


def _is_loopback(host: str) -> bool:
    import ipaddress  # few processes that import this module open a table of a catalog

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _unusable(url: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"{shown(url)} does not name a table of Unity Catalog. {why}", option="path")


def _no_server(url: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"{shown(url)} cannot be the URL of a Unity Catalog server. {why}", option=URI_OPTION)
