"""The session's settings that matter to reads and writes. Workers cannot see the session, so the settings travel as an option."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.errors import PySparkException

from delta_py.errors import InvalidOptionError
from delta_py.object_stores.open_store import open_store
from delta_py.storage.addresses import is_name_in_catalog, kind_of
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.streaming.schema_evolution import ALLOW_CONFS
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.options.catalog_session_settings import (
    COORDINATOR,
    READ_SETTINGS,
    TIME_ZONE,
    TRANSACTION,
    WRITE_SETTINGS,
    as_option,
    read_part,
    storage_part,
    write_part,
)
from spark_plugin.options.common import CONFS, PROPERTY_DEFAULTS, STORAGE, WRITE_CONFS, flag
from spark_plugin.options.deprecated import warn_deprecated
from spark_plugin.options.registered_catalogs import registered_settings
from spark_plugin.options.roads import DISABLE_CONF, OLDER_SETTINGS, parse_disabled
from spark_plugin.options.storage import storage_options

VARIABLES = "spark.sql.variable.substitute"
"""Whether Spark's parser replaces ${setting} in texts by the value of the setting."""
_QUOTES = "spark.sql.ansi.doubleQuotedIdentifiers"  # has no effect without ANSI mode
# Characters whose meaning in an expression depends on a setting, and this setting.
_TEXT_SETTINGS = {"\\": "spark.sql.parser.escapedStringLiterals", '"': _QUOTES}
_SPARK_PREFIX = "spark.sql."
"""The prefix of Spark's own settings, which have defaults."""
_AUTO_RESET_CONF = "spark.databricks.delta.write.txnVersion.autoReset.enabled"


@dataclass(frozen=True, slots=True)
class TablePath:
    """A table as its user named it, by a path or by a name in the catalog.

    url: where the table is. storage: options of its store, which take precedence over the session's settings. name: the table's
    name in the catalog, quoted for SQL; None if the user named a path."""

    url: str
    storage: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None

    def storage_options(self, spark: Any) -> StorageOptions:
        return storage_options(self.storage, storage_settings(spark, self.url))

    def open_store(self, spark: Any) -> ObjectStore:
        return open_store(self.url, self.storage_options(spark))


class _Settings:
    """Looks up a session's settings. The first lookup reads all that were set, and later ones do not notice changes."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._adapter = adapter_of(spark)

    @cached_property
    def explicit(self) -> dict[str, str]:
        """Return all settings that were set in the session or its context, without Spark's defaults."""
        return self._adapter.settings()

    def beginning_with(self, prefix: str) -> dict[str, str]:
        return {name: value for name, value in self.explicit.items() if name.startswith(prefix)}

    def values_of(self, names: Iterable[str]) -> dict[str, str]:
        """Return for each name the session's value, or Spark's own default; names with neither are left out. Defaults of other
        libraries, such as delta-spark, do not count. Over Spark Connect each name is a separate call to the server."""
        values = ((name, self._value_of(name)) for name in names)
        return {name: value for name, value in values if value is not None}

    def _value_of(self, name: str) -> str | None:
        """Return the session's value or Spark's default; None if there is neither. Only a lookup by name (`conf`) returns the
        defaults that Spark has for its own settings."""
        if not self._adapter.has_local_settings or (name.startswith(_SPARK_PREFIX) and name not in self.explicit):
            return conf(self._spark, name)
        return self.explicit.get(name)

    def storage(self, path: str | None, registered: Mapping[str, str]) -> dict[str, str]:
        """Return the settings for the store of a path; without a path, those for a path on this machine's disks. registered:
        settings of catalogs that the program has registered, by their whole names."""
        if path is None or (kind_of(path) is None and not is_name_in_catalog(path)):
            return storage_part(self.values_of((COORDINATOR, TRANSACTION)), {}, path or "")
        return storage_part({**self.explicit, **registered}, self._adapter.hadoop_settings("fs."), path)


def storage_settings(spark: Any, path: str | None) -> dict[str, str]:
    """Return the session's settings for the store of a path, with the tokens of registered catalogs. They must not become an
    option of Spark, which others may see (registered_catalogs.py)."""
    return _Settings(spark).storage(path, registered_settings(spark))


def read_settings(spark: Any, path: str | None, *, tracks_schema: bool = False) -> str:
    """Return the option SESSION of a read of a path. Settings that a server hides are left out, and so are the tokens of
    registered catalogs: others may see options (registered_catalogs.py). tracks_schema: the read is a stream with a log of
    schemas, whose settings have names that end in a number of the stream."""
    settings = _Settings(spark)
    allowed_changes = settings.beginning_with(ALLOW_CONFS) if tracks_schema else {}
    parts = read_part(settings.values_of(READ_SETTINGS), adapter_of(spark).default_parallelism())
    return as_option({**parts, CONFS: allowed_changes or None, STORAGE: settings.storage(path, {}) or None})


def write_settings(spark: Any, path: str | None) -> str:
    """Return the option SESSION of a write to a path. As in read_settings, it has no tokens of registered catalogs, because
    others may see options (registered_catalogs.py)."""
    settings = _Settings(spark)
    parts = write_part({**settings.values_of((TIME_ZONE, *WRITE_SETTINGS)), **settings.beginning_with(PROPERTY_DEFAULTS)})
    return as_option({**parts, STORAGE: settings.storage(path, {}) or None})


def default_settings(spark: Any) -> dict[str, str]:
    """Return the session's settings that define the properties of new tables."""
    return _Settings(spark).beginning_with(PROPERTY_DEFAULTS)


def reset_transaction(spark: Any) -> None:
    """Reset the transaction after a write that took it from the session, if the settings say that its version is for one
    write."""
    if resets_transaction(spark):
        spark.conf.unset(WRITE_CONFS["txnVersion"])


def resets_transaction(spark: Any) -> bool:
    """Return whether a write would take its transaction from the session, and for that write only."""
    return conf(spark, WRITE_CONFS["txnVersion"]) is not None and (conf(spark, _AUTO_RESET_CONF) or "false").lower() == "true"


def active(spark: Any) -> AbstractContextManager[None]:
    """Make the session the active one of this thread inside the block. Spark looks for Python sources in the active session, and
    a thread that the user started has none. A Spark Connect client assumes that the server's cached data is the active
    session's."""
    return adapter_of(spark).activated()


def conf(spark: Any, name: str) -> str | None:
    """Return a setting, or Spark's default for it; None if there is neither."""
    try:
        value = spark.conf.get(name, None)
    except PySparkException:  # a server may hide a setting
        return None
    return None if value in (None, "<undefined>") else str(value)


def is_enabled(spark: Any, name: str) -> bool:
    """Return whether the session has not disabled a name of roads.py. Raises InvalidOptionError for an unknown name in
    DISABLE_CONF."""
    if name in parse_disabled(conf(spark, DISABLE_CONF) or ""):
        return False
    older_setting = OLDER_SETTINGS[name]
    if conf(spark, older_setting) is None:
        return True
    warn_deprecated(f"setting {older_setting}", f"to {name} in the place of false; else leave it out")
    return is_on(spark, older_setting)


def disable(spark: Any, names: Iterable[str]) -> None:
    """Disable more parts of pydelta in the session. names: as in roads.py."""
    spark.conf.set(DISABLE_CONF, ",".join(sorted(parse_disabled(conf(spark, DISABLE_CONF) or "") | {*names})))


def check_disabled(spark: Any) -> None:
    """Raise InvalidOptionError for an unknown name in DISABLE_CONF."""
    parse_disabled(conf(spark, DISABLE_CONF) or "")


def is_case_sensitive(spark: Any) -> bool:
    """Return whether names in statements match columns only in the same case."""
    return is_on(spark, "spark.sql.caseSensitive", default=False)


def read_otherwise(spark: Any, text: str) -> str | None:
    """Return the setting that makes the session's parser read the text of an expression differently than pydelta always reads it;
    None if both read it in the same way."""
    if "${" in text and is_on(spark, VARIABLES):
        return VARIABLES
    setting = next((name for mark, name in _TEXT_SETTINGS.items() if mark in text and is_on(spark, name, default=False)), None)
    # This setting has no effect without ANSI mode.
    return None if setting == _QUOTES and not is_on(spark, "spark.sql.ansi.enabled") else setting


def check_condition_text(spark: Any, option: str, text: Any) -> None:
    """Check an option that is a condition. Raises InvalidOptionError if the session's parser would read it differently."""
    setting = read_otherwise(spark, text) if isinstance(text, str) else None
    if setting is not None:
        raise InvalidOptionError(
            f"The option {option} is {text!r}. Conditions of options mean the same in all sessions, and the setting {setting} "
            "gives it another meaning. Nothing was read or written. Write names in backticks and texts in single quotes, without "
            f"backslashes and ${{variables}}, or set {setting} to false.",
            option=option,
        )


def check_rule_text(spark: Any, of: str, text: str) -> None:
    """Check a rule that a table will get. of: which rule, for messages. Raises InvalidOptionError if the session's parser would
    read the text differently: a table's rules mean the same in all sessions."""
    setting = read_otherwise(spark, text)
    if setting is not None:
        raise InvalidOptionError(
            f"{of} is {text!r}. Rules of tables mean the same in all sessions, and the setting {setting} gives it another "
            "meaning. Nothing was changed. Write names in backticks and texts in single quotes, without backslashes and "
            f"${{variables}}, or set {setting} to false.",
            option=setting,
        )


def is_on(spark: Any, name: str, *, default: bool = True) -> bool:
    """Return the value of a setting that is true or false. default: the result if the session has no value. Raises
    InvalidOptionError for another text."""
    text = conf(spark, name)
    return flag({} if text is None else {name: text}, name, default=default)
