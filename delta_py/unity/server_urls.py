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
    """The name of a table on a Unity Catalog server. server: its URL, without the path of the API. parts: catalog, schema, table;
    case matters."""

    server: str
    parts: tuple[str, str, str]

    @property
    def text(self) -> str:
        """The name as in SQL."""
        return joined_name(self.parts)

    @property
    def shown(self) -> str:
        """The URL with the table's name, for messages."""
        return f"unity://{self.server.partition('://')[2]}/{self.text}"


def table_of(url: str, options: Mapping[str, str]) -> CatalogTableName:
    """The table that a URL names. options: unity.uri is read from them. Raises InvalidOptionError for a URL that names no table
    of a server, and as server_url."""
    server, parts = named_parts(url, options)
    if len(parts) != 3:
        raise _no_table_name_error(url, "Write catalog.schema.table, with backticks around a part that contains a dot.")
    catalog, schema, table = parts
    return CatalogTableName(server, (catalog, schema, table))


def named_parts(url: str, options: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The server of a URL, and the parts of the name in it, which may be that of a catalog or of a schema. Raises as table_of."""
    scheme, _, after_scheme = url.partition("://")
    if scheme.lower() == "uc":
        server = options.get(URI_OPTION) or os.environ.get(HOST_VARIABLE, "")
        name = after_scheme
        if not server:
            raise _no_table_name_error(
                url,
                f"It names no server. Give the option {URI_OPTION} with the server's URL, or write unity://host/{after_scheme}.",
            )
    else:
        host, _, name = after_scheme.partition("/")
        server = f"{'http' if _is_loopback(_host_of(host, url)) else 'https'}://{host}"
    return server_url(server), _decoded_parts(name, url)


def url_of(parts: Sequence[str]) -> str:
    """The URL of a catalog, a schema or a table, without a server. Parts are encoded, so that nothing in them counts as a
    version, a separating dot or a backtick."""
    return f"uc://{'.'.join(map(_encode_part, parts))}"


def _encode_part(part: str) -> str:
    """A part of a name for a URL. java/catalog/UnityCatalog.java encodes in the same way."""
    return quote(part, safe="").replace(".", "%2E").replace("~", "%7E")


def server_url(text: str) -> str:
    """The URL of a server, without the path of its API. Raises InvalidOptionError if it is not the URL of a server, contains a
    password, or would send a token unencrypted over a network."""
    text = text if "://" in text else f"https://{text}"
    parts = _split_url(text)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
        raise _no_server_error(text, "Write https://host.")
    if "@" in parts.netloc:
        raise _no_server_error("...", "Credentials in URLs end up in logs: give the option unity.token.")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise _no_server_error(text, "It would send the token unencrypted. Use https; http is for servers on this machine.")
    if any(character <= " " or character >= "\x7f" for character in text):
        raise _no_server_error(text, "It contains characters that no URL can contain.")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix(_API_PATH)}"


def is_local(server: str) -> bool:
    """Whether a server, by its URL, is on this machine."""
    return _is_loopback(urlsplit(server).hostname or "")


def _decoded_parts(name: str, url: str) -> tuple[str, ...]:
    """The parts of a name, decoded. url: for errors."""
    # Backticks and dots separate parts, so each part is decoded after the name was split.
    parts = tuple(unquote(part) for part in split_name(name.rstrip("/")))
    if not all(parts) or len(name) > _LONGEST_NAME or not "".join(parts).isprintable():
        raise _no_table_name_error(url, "No table can have that name. Write catalog.schema.table.")
    return parts


def _host_of(netloc: str, url: str) -> str:
    """The host name in a URL's host part, without its port. url: for errors, which do not repeat a password."""
    parts = _split_url(f"https://{netloc}")
    if not parts.hostname or "@" in netloc:
        raise _no_table_name_error(
            url if "@" not in netloc else f"unity://...@{netloc.rpartition('@')[2]}", "Write unity://host/c.s.t."
        )
    return parts.hostname


def _split_url(url: str) -> SplitResult:
    """The URL's components. Raises InvalidOptionError for a text that is no URL."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # it is parsed when it is first read
    except ValueError as error:
        raise _no_server_error(url, f"It is no URL: {error}.") from error
    return parts


def _is_loopback(host: str) -> bool:
    """Whether a host, by its name or address, is this machine."""
    import ipaddress  # few processes that import this module open a table of a catalog

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _no_table_name_error(url: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"{shown(url)} does not name a table of Unity Catalog. {why}", option="path")


def _no_server_error(url: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"{shown(url)} cannot be the URL of a Unity Catalog server. {why}", option=URI_OPTION)
