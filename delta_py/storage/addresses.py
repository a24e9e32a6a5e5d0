"""URLs of object stores: which store, which container, which key.

    address_of("s3a://bucket/tables/t")    # Address("s3", "", "bucket", "tables/t")

S3 and Google Cloud Storage have buckets; Azure has containers in accounts. If a URL does not name its account, the options do.
Keys are the URL's text without decoding: `%20` is three characters of a key, as in Spark's paths.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal

from delta_py.errors import InvalidOptionError, shown
from delta_py.storage.regular_files import can_be_name

StoreKind = Literal["s3", "gs", "az"]

_KINDS: dict[str, StoreKind] = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "az": "az",
    "abfs": "az",
    "abfss": "az",
    "wasb": "az",
    "wasbs": "az",
}
_CATALOG_SCHEMES = ("unity", "uc")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://([^/]*)/*(.*)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_AZURE_HOST = re.compile(r"(?P<container>[^@]+)@(?P<account>[^.@]+)\.(?:dfs|blob)\.(?P<cloud>[^@/]+)")
_AZURE_CLOUD = "core.windows.net"


@dataclass(frozen=True, slots=True)
class Address:
    """A place in an object store. account: of Azure, empty if only the options name it; followed by the rest of the host name if
    that is not Azure's own (`acme.core.chinacloudapi.cn`). container: S3's and Google's bucket. key: without `/` at its ends;
    empty for the container's root."""

    kind: StoreKind
    account: str
    container: str
    key: str

    @property
    def service(self) -> tuple[StoreKind, str]:
        """The kind of store and the account. Places with the same service share a connection and credentials."""
        return self.kind, self.account


def has_scheme(path: str) -> bool:
    """Whether the path begins like a URL."""
    return _SCHEME.match(path) is not None


def location_of(root: str) -> str:
    """A table's root as a URI, as users of Spark see it; nothing is escaped."""
    return root if has_scheme(root) else f"file:{root}"


def scheme_of(url: str) -> str | None:
    """The scheme in lower case; None for a path without one."""
    parts = _URL.fullmatch(url)
    return None if parts is None else parts[1].lower()


def kind_of(url: str) -> StoreKind | None:
    """The kind of object store that serves a URL; None for local paths and for schemes that no store serves."""
    return _KINDS.get(scheme_of(url) or "")


def is_name_in_catalog(url: str) -> bool:
    """Whether a URL is the name of a table in Unity Catalog."""
    return scheme_of(url) in _CATALOG_SCHEMES


def address_of(url: str) -> Address:
    """The place that the URL of an object store names. Raises InvalidOptionError for a URL without a container, or with
    credentials in it."""
    parts, kind = _URL.fullmatch(url), kind_of(url)
    assert parts is not None and kind is not None, "ask kind_of first"
    if not can_be_name(url):
        raise _unusable_url_error(shown(url), "It contains characters that no object name can contain.")
    scheme, authority, key = parts[1].lower(), parts[2], parts[3].rstrip("/")
    if kind == "az" and scheme != "az":  # only az:// leaves out the account: abfss://container@account.dfs.core.windows.net/path
        host_parts = _AZURE_HOST.fullmatch(authority)
        if host_parts is None:
            raise _unusable_url_error(url, f"An {scheme} URL is {scheme}://container@account.dfs.core.windows.net/path.")
        account, cloud = host_parts["account"].lower(), host_parts["cloud"].lower()
        return Address(kind, account if cloud == _AZURE_CLOUD else f"{account}.{cloud}", host_parts["container"], key)
    if "@" in authority:
        raise _unusable_url_error(url, "Credentials in URLs end up in logs: give them as options or environment variables.")
    if not authority:
        raise _unusable_url_error(url, "It names no bucket or container.")
    return Address(kind, "", authority, key)


def azure_host(account: str, service: str) -> str:
    """The host of an Address' account, such as `acme.blob.core.windows.net`. service: dfs, blob."""
    name, _, cloud = account.partition(".")
    return f"{name}.{service}.{cloud or _AZURE_CLOUD}"


def canonical(url: str) -> str:
    """The URL in the form of a store's root: without `/` at its end and with its scheme in lower case."""
    parts = _URL.fullmatch(url)
    assert parts is not None
    key = parts[3].rstrip("/")
    return f"{parts[1].lower()}://{parts[2]}/{key}" if key else f"{parts[1].lower()}://{parts[2]}"


def root_pattern(root: str) -> str:
    """A regular expression (RE2) for finding the files below a table's root. It matches the root, with its final `/`, at the
    beginning of each absolute path or URL below the root. The URL may have any scheme of the same store."""
    kind, url = kind_of(root), _URL.fullmatch(root)
    if kind is None or url is None:
        return rf"^(?:file:(?://(?:localhost)?)?)?{_literal(root.rstrip('/'))}/+"
    schemes = "|".join(scheme for scheme, store_kind in _KINDS.items() if store_kind == kind)
    place = f"{url[2]}/{url[3]}".rstrip("/")
    return rf"^(?:{schemes})://{_literal(place)}/+"


def is_same_place(root: str, other_root: str) -> bool:
    """Whether the roots of two tables, which may be spelled differently, are the same place. If only one of them names its Azure
    account, the accounts count as equal. Raises InvalidOptionError as address_of."""
    return is_within(root, other_root) and is_within(other_root, root)


def is_within(root: str, other_root: str) -> bool:
    """Whether `root` lies below `other_root`, or is the same place in the sense of is_same_place. `s3://b/t/u` is within
    `s3://b/t`. For local paths, links are followed first. Raises InvalidOptionError as address_of."""
    if kind_of(root) is None or kind_of(other_root) is None:  # one is on this machine: the other one must be, too
        return kind_of(root) is kind_of(other_root) and _is_or_lies_below(os.path.realpath(root), os.path.realpath(other_root))
    address, other_address = address_of(root), address_of(other_root)
    is_same_account = address.account == other_address.account or not (address.account and other_address.account)
    return (
        is_same_account
        and (address.kind, address.container) == (other_address.kind, other_address.container)
        and _is_or_lies_below(address.key, other_address.key)
    )


def _is_or_lies_below(path: str, ancestor: str) -> bool:
    """Whether `path` is `ancestor` or lies below it. Everything lies below an empty key, and below `/`."""
    return f"{path}/".startswith(f"{ancestor}/" if ancestor.strip("/") else "")


def can_reach(root: str, other_root: str) -> bool:
    """Whether another table is in the same storage as this one: in directories of this machine, or in the same account of the
    same kind of store, so that credentials go to no other server."""
    kind = kind_of(root)
    if kind is None or kind_of(other_root) != kind:
        return kind is None and other_root.startswith("/")
    try:
        return address_of(other_root).service == address_of(root).service
    except InvalidOptionError:
        return False


def _literal(text: str) -> str:
    """A pattern that matches exactly this text: every character as its code point, so that none has a special meaning."""
    return "".join(f"\\x{{{ord(letter):x}}}" for letter in text)


def _unusable_url_error(url: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"{url} cannot be used as the path of a table. {why}", option="path", path=url)
