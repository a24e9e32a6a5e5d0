"""Catalogs of Unity Catalog servers that a program names in `register(spark, catalogs=...)`, with their tokens.

    remember(spark, {"main": {"uri": "https://catalog.example.com", "token": "..."}})

The tokens are in no setting of Spark, which writes settings into its event log, and over Spark Connect in no option, which a
server shows as the text of an operation. They are part of the session's source (session_source.py), and known in this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_py.errors import InvalidOptionError
from delta_py.types.similar_names import unknown_option_error
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.options.unity_settings import CATALOG_PREFIX, CATALOG_SETTINGS

_OF_PROCESS = ""
_settings: dict[str, dict[str, str]] = {}
"""By the id of a Spark Connect session; the classic sessions of a process share theirs."""


def remember(spark: Any, catalogs: Mapping[str, Mapping[str, str]]) -> None:
    """Register catalogs for a session. catalogs: for each name its settings, as those of `spark.sql.catalog.<name>`. Raises
    InvalidOptionError for an unknown setting, and for a catalog without a server."""
    settings = {}
    for catalog, catalog_settings in catalogs.items():
        for name, value in catalog_settings.items():
            if name not in CATALOG_SETTINGS:
                what = f"Catalogs of Unity Catalog have no setting {name!r}, which {catalog} has."
                raise unknown_option_error(name, CATALOG_SETTINGS, what, "Correct the name.")
            settings[f"{CATALOG_PREFIX}{catalog}.{name}"] = str(value)
        if "uri" not in catalog_settings:
            raise InvalidOptionError(f"The catalog {catalog} has no server. Give its uri.", option="catalogs")
    # The session's settings get the servers, which are no secrets. Nothing is set before all catalogs are checked.
    for catalog, catalog_settings in catalogs.items():
        spark.conf.set(f"{CATALOG_PREFIX}{catalog}.uri", catalog_settings["uri"])
    _settings[_key(spark)] = {**registered_settings(spark), **settings}


def registered_settings(spark: Any) -> dict[str, str]:
    """Return the settings of all catalogs that were registered for this session, by their whole names, such as
    `spark.sql.catalog.main.token`."""
    return dict(_settings.get(_key(spark), {}))


def settings_of_process() -> dict[str, str]:
    """Return the settings of all catalogs that this process has registered for its classic sessions, by their whole names."""
    return dict(_settings.get(_OF_PROCESS, {}))


def take_settings(spark: Any, settings: Mapping[str, str]) -> None:
    """Store the settings of catalogs for a session, in place of its earlier ones. settings: those that another process registered
    for the same session, by their whole names."""
    _settings[_key(spark)] = dict(settings)


def _key(spark: Any) -> str:
    """Return the key of a session in _settings."""
    adapter = adapter_of(spark)
    return _OF_PROCESS if adapter.is_driver else adapter.session_id
