"""Settings of a session for servers of Unity Catalog: which token goes to which server.

    unity_storage(confs, hadoop, "uc://main.sales.orders")     # storage options: unity.uri, unity.token, ...

A session names servers as `spark.pydelta.unity.uri`, and for each catalog as `spark.sql.catalog.<name>.uri`, with the names that
Unity Catalog's connector for Spark has. A token goes only to the server that was set together with it: the path of a table may
come from somebody else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from delta_py.errors import InvalidOptionError
from delta_py.storage.addresses import is_name_in_catalog, scheme_of
from delta_py.storage.store_options import is_storage_option
from delta_py.types.names import split_name
from delta_py.unity.server_urls import TOKEN_OPTIONS, URI_OPTION, server_url, table_of
from spark_plugin.options.common import SESSION, STORAGE

CATALOG_PREFIX = "spark.sql.catalog."
SHARE_OPTION = "unity.share_token"

_PYDELTA = "spark.pydelta."
CATALOG_SETTINGS = {
    "uri": URI_OPTION,
    "token": "unity.token",
    "auth.token": "unity.token",
    "auth.oauth.uri": "unity.oauth_uri",
    "auth.oauth.clientId": "unity.client_id",
    "auth.oauth.clientSecret": "unity.client_secret",
    "auth.oauth.subjectToken": "unity.subject_token",
    "auth.oauth.subjectTokenFile": "unity.subject_token_file",
}
"""Settings below `spark.sql.catalog.<name>.`, as Unity Catalog's connector names them, and the storage options for them."""


def unity_storage(confs: Mapping[str, str], connectors: Mapping[str, str], url: str) -> dict[str, str]:
    """Return the session's storage options for a table by its name in a catalog. connectors: the storage options that
    Hadoop's settings define.

    Raises InvalidOptionError for a URL that names no table.
    """
    pydelta_confs = {name.removeprefix(_PYDELTA): value for name, value in confs.items() if name.startswith(_PYDELTA)}
    # The options unity.* come from server_options below, which decides whether this URL's server may get the token.
    options = {name: value for name, value in pydelta_confs.items() if is_storage_option(name) and not name.startswith("unity.")}
    # A catalog coordinates its tables itself, so the session's coordinator is for other tables. In a transaction over tables the
    # option stays, so that opening the table refuses it (open_catalog_table.py).
    if "coordinator.transaction" not in options:
        options.pop("coordinator", None)
    return {**connectors, **options, **server_options(confs, url), SHARE_OPTION: "true"}


def without_other_servers(session: Mapping[str, str], call: Mapping[str, str]) -> dict[str, str]:
    """Return those of the session's storage options that apply to a read or write. call: the storage options of this read or
    write.

    If `call` names another server, the session's tokens are left out, because that server must not get them. If `call` has a
    token, they are left out too, because it replaces all of them.
    """
    names_another_server = URI_OPTION in call and call[URI_OPTION] != session.get(URI_OPTION)
    if names_another_server:
        dropped_names: tuple[str, ...] = (*TOKEN_OPTIONS, URI_OPTION)
    elif any(name in call for name in TOKEN_OPTIONS):
        dropped_names = TOKEN_OPTIONS
    else:
        dropped_names = ()
    return {name: value for name, value in session.items() if name not in dropped_names}


def with_registered(options: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a read or write, with the token of the server that the path names in the option SESSION. settings: of
    catalogs that the session has registered, by their whole names. Other tokens in SESSION are removed; the options are unchanged
    if no registered catalog has this server."""
    path = next((value for name, value in options.items() if name.lower() == "path"), "")
    catalog_options = server_options(settings, path) if settings and is_name_in_catalog(path) else {}
    if not catalog_options:
        return dict(options)
    session = json.loads(options.get(SESSION, "{}"))
    storage = {name: value for name, value in session.get(STORAGE, {}).items() if name not in TOKEN_OPTIONS}
    return {**options, SESSION: json.dumps({**session, STORAGE: {**storage, **catalog_options, SHARE_OPTION: "true"}})}


def unity_catalogs(confs: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the storage options of each catalog that has a server, by its name."""
    catalogs: dict[str, dict[str, str]] = {}
    for name, value in confs.items():
        if not name.startswith(CATALOG_PREFIX):
            continue
        catalog, _, setting = name.removeprefix(CATALOG_PREFIX).partition(".")
        option = _BY_SETTING.get(setting.lower())
        if option is not None and value:
            catalogs.setdefault(catalog, {})[option] = value
    return {catalog: options for catalog, options in catalogs.items() if URI_OPTION in options}


_BY_SETTING = {name.lower(): option for name, option in CATALOG_SETTINGS.items()}


def server_options(confs: Mapping[str, str], url: str) -> dict[str, str]:
    """Return the options of the URL's server, empty if the settings do not name it. For a URL without a server, it is the one of
    its catalog, or else that of spark.pydelta.unity.uri."""
    assert is_name_in_catalog(url), url
    catalogs = unity_catalogs(confs)
    if scheme_of(url) == "uc":
        catalog = split_name(url.partition("://")[2])[0]
        return catalogs.get(catalog) or _pydelta_server(confs)
    table_name = table_of(url, {})
    # The settings of the catalog that the URL names come first. A token goes only to the server that was set together with it.
    candidates = [catalogs.get(table_name.parts[0], {}), _pydelta_server(confs), *catalogs.values()]
    return next((options for options in candidates if _is_server(options, table_name.server)), {})


def _pydelta_server(confs: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the server that `spark.pydelta.unity.uri` names, with its tokens."""
    options = ((option, confs.get(f"{_PYDELTA}{option}")) for option in (URI_OPTION, *TOKEN_OPTIONS))
    return {option: value for option, value in options if value is not None}


def _is_server(options: Mapping[str, str], server: str) -> bool:
    """Return whether the options are those of this server. Options with a URL that cannot be parsed are of no server."""
    uri = options.get(URI_OPTION)
    if uri is None:
        return False
    try:
        return server_url(uri) == server
    except InvalidOptionError:
        return False
