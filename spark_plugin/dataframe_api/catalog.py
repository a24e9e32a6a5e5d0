"""Names of tables in Spark's catalog, and the paths that they stand for.

The entry of a Delta table is a name of the session catalog, a path, and the columns that the table had when it was entered. A
table that was made without a path is a managed table, whose files are deleted with its name, if the session is a classic one and
has our catalogs. Any other table is an external table, whose data stay. Nearly all of this module is SQL and DataFrames, so that
it works over Spark Connect too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from delta_py.errors import InvalidOptionError, TableAlreadyExistsError, UnsupportedOperationError
from delta_py.protocol.paths import decode_path
from delta_py.storage.addresses import has_scheme
from delta_py.types.names import quoted, unquoted
from spark_plugin.data_source import FORMAT
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.internals.wrapping import spark_sql
from spark_plugin.options.read_options import CATALOG_KEY, catalog_options, local_path
from spark_plugin.options.settings import conf, is_case_sensitive
from spark_plugin.schema_conversion import metadata_value, without_metadata
from spark_plugin.sql_catalog.delta_names import DELTA, DELTA_SPARK_CATALOG, delta_is_ours
from spark_plugin.sql_catalog.install import PATH_CATALOG, TABLES_CATALOG, catalog_conf
from spark_plugin.sql_catalog.unity_names import full_unity_name, url_of_name

PROVIDER_CONF = "spark.pydelta.tableProvider"
"""`delta` or `pydelta`: the provider of new names that DeltaTable.create, clone and convertToDelta enter into the catalog."""

_SESSION_CATALOG = "spark_catalog"
_NAME_PART = re.compile(r"`(?:[^`]|``)+`|[^`.]+")
_TABLE_NAME = re.compile(r"\w+", re.ASCII)
# Facts of SHOW TABLE EXTENDED, one per line. Spark prints comments, properties and names of columns among them unescaped, so a
# line break in one of these can make a line look like a fact. Only the facts that Spark prints before all of these are certain.
_TYPE_AND_PROVIDER = re.compile(r"^Type: (.*)\n(?:Provider: (.*)\n)?", re.MULTILINE)
_LOCATION = re.compile(r"^Location: (.*)\n", re.MULTILINE)
# What Spark prints after a location, in this order. Any other text there belongs to the location.
_AFTER_LOCATION = re.compile(
    r"(?:Serde Name: .*\n)?(?:Serde Library: .*\n)?(?:InputFormat: .*\n)?(?:OutputFormat: .*\n)?(?:Compressed: .*\n)?"
    r"(?:Storage Properties: \[(?s:.*?)\]\n)?(?:Partition Provider: .*\n)?(?:Partition Columns: .*\n)?"
    r"(?:Schema: root\n(?: \|.*\n)+)?\n*"
)
# Over Connect, java/tables/Columns.java adds this key to the columns of a table whose entry has other columns.
_STALE_KEY = "pydelta.entryIsOld"


@dataclass(frozen=True, slots=True)
class Entry:
    """The catalog's entry of a name. provider: lower-case, empty for a view. path: of the table; None for a view, and if the
    catalog's answer does not prove it. options: those of CREATE TABLE except the path. external: dropping the entry leaves the
    data. tracks_partitions: the catalog has a list of its partitions. columns: those that the table had when it was entered, as
    the JSON of a schema; None unless our catalog returns them."""

    name: str
    provider: str
    path: str | None = None
    external: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    tracks_partitions: bool = False
    columns: str | None = None

    @property
    def is_ours(self) -> bool:
        return self.provider == FORMAT

    @property
    def is_delta(self) -> bool:
        """Whether pydelta or delta-spark entered the name. Both store the path in the catalog; delta-spark stores no columns
        there."""
        return self.is_ours or self.provider == DELTA

    @property
    def kind(self) -> str:
        """What the name stands for, for messages."""
        return f"a table of format {self.provider}" if self.provider else "a view"

    def writable_path(self) -> str:
        """Return the path of the table. Raises UnsupportedOperationError if the name does not stand for a Delta table at its
        newest version."""
        if not self.is_delta:
            raise UnsupportedOperationError(
                f"{self.name} is {self.kind}, not of pydelta; nothing was written. Write under another name.", table=self.name
            )
        if self.is_ours and not self.external and self.path is None:
            raise UnsupportedOperationError(
                f"{self.name} is a managed table, and only a session with pydelta's catalogs knows where it is; nothing was "
                "written. Write to its path with save(path). (DROP TABLE would delete its files.)",
                table=self.name,
            )
        if self.options:
            options = ", ".join(f"{key}={value}" for key, value in self.options.items())
            raise UnsupportedOperationError(
                f"{self.name} stands for a table read with the options {options}; nothing was written. Write to its path "
                f"{self.path} with save(path).",
                table=self.name,
            )
        if self.path is None:
            advice = (
                f"DROP TABLE {self.name}, which leaves the data, and enter it again: CREATE TABLE {self.name} USING "
                f"{self.provider} LOCATION '...'"
                if self.external
                else "Write to its path with save(path). (DROP TABLE would delete its files: it is a managed table.)"
            )
            raise UnsupportedOperationError(
                f"The catalog does not say for certain where {self.name} is: its location is not the one for which its columns "
                f"were entered, or a text of it reads as a second one. Nothing was written. {advice}",
                table=self.name,
            )
        return self.path


def is_ours(spark: Any, name: str) -> bool:
    """Return whether the name stands for a table of pydelta. Without our catalogs the metadata of the table's columns decides;
    no command runs for tables that are not ours.
    """
    if handled_path(spark, name) is not None:
        return True
    try:
        if has_catalogs(spark):
            entry = find(spark, name)
        else:
            schema = spark.table(name).schema
            if metadata_value(schema, CATALOG_KEY) is None:
                return False
            entry = find(spark, name, schema)  # a view of a Delta table, and a copy in another format, have our columns too
    except (PySparkException, UnsupportedOperationError, InvalidOptionError):  # Spark itself reports what is wrong with the name
        return False
    return entry is not None and _is_handled(spark, entry)


def _is_handled(spark: Any, entry: Entry) -> bool:
    """Return whether pydelta reads and writes the table."""
    return entry.is_ours or (entry.is_delta and delta_is_ours(spark))


def path_of_ours(spark: Any, name: str) -> str | None:
    """Return the path of the table; None for a name of another table, and for one that the catalog reads with options."""
    try:
        entry = find(spark, name)
    except (PySparkException, UnsupportedOperationError, InvalidOptionError):  # Spark itself reports what is wrong with the name
        return None
    if entry is None or entry.options:
        return None
    return entry.path if _is_handled(spark, entry) else None


def find(spark: Any, name: str, schema: StructType | None = None) -> Entry | None:
    """Return the entry, or None if there is none. A name that is a path, such as pydelta.`/path`, always has an entry. As in
    Spark, temporary views take precedence if the name has no database. schema: the schema of spark.table(name), if the caller
    knows it.

    Raises UnsupportedOperationError for a name outside of the session catalog.
    """
    path = handled_path(spark, name)
    if path is not None:
        return Entry(name, FORMAT, path, external=True)
    namespace, table = _namespace_and_table(spark, name)
    if has_catalogs(spark):
        return _entry_of_fields(name, SparkInternals(spark).entry(namespace[-1] if namespace else None, table))
    in_clause = f" IN {_quoted(namespace)}" if namespace else ""
    rows = spark_sql(spark, f"SHOW TABLE EXTENDED{in_clause} LIKE '{table}'").collect()
    # Spark lists temporary views for every database; a name with a database cannot mean them.
    entries = [row for row in rows if row["tableName"].lower() == table.lower() and not (namespace and row["isTemporary"])]
    if any(row["tableName"] != table for row in entries) and is_case_sensitive(spark):
        entries = [row for row in entries if row["tableName"] == table]
    if not entries:
        return None
    if any(row["isTemporary"] for row in entries):
        return Entry(name, "")
    facts = entries[0]["information"]
    table_type, provider = _type_and_provider(facts)
    options: dict[str, str] = {}
    if provider == FORMAT:
        options_text = metadata_value(schema or spark.table(name).schema, CATALOG_KEY)
        options = {} if options_text is None else catalog_options(options_text)
    external, entered_path = table_type == "EXTERNAL", options.pop("path", None)
    # A view has no location. The one of a managed table of pydelta is certain only if its columns contain the path too.
    has_certain_path = bool(provider) and (external or provider != FORMAT or entered_path is not None)
    path = _certain_path(entered_path, facts) if has_certain_path else None
    return Entry(name, provider, path, external, options, "\nPartition Provider: Catalog\n" in facts)


def find_stored(spark: Any, name: str) -> Entry | None:
    """Do the same as `find`, but ignore temporary views, as Spark does when it creates or replaces a table: the table is in the
    catalog, even if a view hides its name."""
    entry = find(spark, name)
    if entry is None or entry.provider:  # no entry, or a table
        return entry
    # A view: with a database before it, the name cannot mean a temporary one.
    namespace, table = _namespace_and_table(spark, name)
    return find(spark, _quoted([*(namespace or [_SESSION_CATALOG, spark.catalog.currentDatabase()]), table]))


def has_catalogs(spark: Any) -> bool:
    """Return whether this is a classic session in which our classes return the entries of Spark's catalog: through our own
    catalog, or together with delta-spark's."""
    if not adapter_of(spark).is_driver or conf(spark, catalog_conf("pydelta")) != PATH_CATALOG:
        return False
    return conf(spark, catalog_conf("spark_catalog")) in (TABLES_CATALOG, DELTA_SPARK_CATALOG)


def _entry_of_fields(name: str, fields: Mapping[str, Any] | None) -> Entry | None:
    """Return the entry; None if the catalog has none. fields: of the entry in our Java catalog, by name; None if it has none."""
    if fields is None:
        return None
    options = catalog_options(fields["options"]) if "options" in fields else {}
    path = options.pop("path", None)
    provider = (fields.get("provider") or "").lower()
    external, tracks_partitions = fields["type"] == "EXTERNAL", bool(fields.get("tracksPartitions"))
    return Entry(name, provider, path, external, options, tracks_partitions, fields.get("columns"))


def _type_and_provider(facts: str) -> tuple[str, str]:
    """Return the type (MANAGED, EXTERNAL or VIEW), and the provider in lower case, which is empty for a view. facts: the facts of
    SHOW TABLE EXTENDED."""
    match = _TYPE_AND_PROVIDER.search(facts)
    assert match is not None, f"SHOW TABLE EXTENDED has no type: {facts}"
    return match[1], (match[2] or "").lower()


def _certain_path(entered_path: str | None, facts: str) -> str | None:
    """Return where a table is. entered_path: the path in the metadata of its columns, where reads go; None if there is none.
    facts: the facts of SHOW TABLE EXTENDED.

    With an entered path, the catalog must still have this location. Without one, the text must contain exactly one location.
    Otherwise the result is None.
    """
    if entered_path is not None:
        is_location = any(f"\nLocation: {scheme}{entered_path}\n" in facts for scheme in ("", "file:", "file://"))
        return entered_path if is_location else None
    match list(_LOCATION.finditer(facts)):
        case [location] if _AFTER_LOCATION.fullmatch(facts, location.end()):
            return local_path(location[1])
    return None


def path_of_new(spark: Any, name: str) -> str | None:
    """Return the path in delta.`/path` or pydelta.`/path`, or that of a name in Unity Catalog; None for a name of Spark's
    catalog."""
    return path_in_name(name) or _unity_url(spark, name)


def path_in_name(name: str) -> str | None:
    """Return the path in delta.`/path` or pydelta.`/path`; None for a name of a catalog."""
    format_path = format_and_path(name)
    return format_path[1] if format_path is not None and format_path[0] in (DELTA, FORMAT) else None


def handled_path(spark: Any, name: str) -> str | None:
    """Return the path in pydelta.`/path`, in delta.`/path` if pydelta handles it, or that of a name in Unity Catalog; otherwise
    None."""
    format_path = format_and_path(name)
    if format_path is None:
        return _unity_url(spark, name)
    if format_path[0] not in (DELTA, FORMAT):
        return None
    return format_path[1] if format_path[0] == FORMAT or delta_is_ours(spark) else None


def _unity_url(spark: Any, name: str) -> str | None:
    """Return the table's URL for a name in Unity Catalog; None for another name, and for a text that is no name."""
    try:
        parts = _parts(name)
    except InvalidOptionError:  # the code that looks the name up reports what is wrong with it
        return None
    return url_of_name(spark, parts)


def format_and_path(name: str) -> tuple[str, str] | None:
    """Return the format, lower-case, and the path in parquet.`/path`; None for a name of the catalog."""
    try:
        parts = _parts(name)
    except InvalidOptionError:  # the code that looks the name up reports what is wrong with it
        return None
    is_path = len(parts) == 2 and ("/" in parts[1] or has_scheme(parts[1]))
    return (parts[0].lower(), parts[1]) if is_path else None


def full_name(spark: Any, name: str) -> str:
    """Return the name with its catalog and database."""
    unity_name = full_unity_name(spark, _parts(name))
    if unity_name is not None:
        return ".".join(unity_name)
    namespace, table = _namespace_and_table(spark, name)
    return ".".join([*(namespace or [_SESSION_CATALOG, spark.catalog.currentDatabase()]), table])


def name_exists_error(entry: Entry) -> TableAlreadyExistsError:
    """Return the error for a new table whose name already exists."""
    return TableAlreadyExistsError(
        f"The table {entry.name} already exists in the catalog{'' if entry.path is None else f' (at {entry.path})'}; nothing was "
        "changed. Replace it, append to it or overwrite it (mode), or use another name.",
        error_class="TABLE_OR_VIEW_ALREADY_EXISTS",
        sql_state="42P07",
        table=entry.name,
    )


def path_exists_error(name: str, path: str) -> TableAlreadyExistsError:
    """Return the error for a new name at whose location a table already lies."""
    return TableAlreadyExistsError(
        f"{name} is not in the catalog, but at {path}, where it would be created, there is a table. Nothing was written. Use "
        f"mode overwrite or createOrReplace to replace its rows, or CREATE TABLE {name} USING {FORMAT} LOCATION '{path}' to "
        "enter it again.",
        error_class="DELTA_PATH_EXISTS",
        path=path,
    )


def new_table_path(spark: Any, name: str, path: str | None) -> str:
    """Return the path of a new table under the name: the requested path, else a path in the database's directory."""
    namespace, table = _namespace_and_table(spark, name)
    if path is None:
        database = namespace or [_SESSION_CATALOG, spark.catalog.currentDatabase()]
        rows = spark_sql(spark, f"DESCRIBE DATABASE {_quoted(database)}").collect()
        location = next(str(value) for key, value in rows if key == "Location")
        directory = local_path(decode_path(location)).rstrip("/")  # a database's location is a URI, unlike a table's
        return f"{directory}/{table if is_case_sensitive(spark) else table.lower()}"
    if os.path.isabs(path) or has_scheme(path):
        return path
    if not adapter_of(spark).is_driver:
        raise InvalidOptionError(
            f"The path {path!r} of table {name} is relative, and the server takes it from another directory than the catalog. "
            "Give the whole path.",
            option="path",
        )
    return os.path.abspath(path)


def new_provider(spark: Any, requested_provider: str | None = None) -> str:
    """Return the provider of a new name: `delta` if that is pydelta's and the caller states it, otherwise `pydelta`. If the
    caller states none, PROVIDER_CONF or else Spark's default format decides."""
    provider = requested_provider or conf(spark, PROVIDER_CONF) or conf(spark, "spark.sql.sources.default") or ""
    return DELTA if provider.lower() == DELTA and delta_is_ours(spark) else FORMAT


def enter(spark: Any, name: str, path: str, provider: str, *, if_absent: bool = False) -> None:
    """Enter the name of an existing table into the catalog with its present columns. provider: pydelta or delta. if_absent: an
    existing name is no error, because another session may have entered it in the meantime. Otherwise raises Spark's error for
    it. Raises InvalidOptionError for a path in which Spark would replace variables."""
    check_enterable(name, path)
    text = path.replace("\\", "\\\\").replace("'", "\\'")
    if_not_exists = "IF NOT EXISTS " if if_absent else ""
    spark_sql(spark, f"CREATE TABLE {if_not_exists}{quoted_name(name)} USING {provider} LOCATION '{text}'")


def may_be_managed(spark: Any, path: str) -> bool:
    """Return whether a new table at a path can be a managed one: nothing is at the path, and the session is a classic one with
    our catalogs."""
    return has_catalogs(spark) and SparkInternals(spark).is_free(path)


def enter_new(spark: Any, name: str, path: str, requested_provider: str | None, *, managed: bool) -> None:
    """Do the same as `enter`. requested_provider: the provider that the caller names, if any. managed: DROP TABLE deletes the
    table's files too; only if may_be_managed."""
    provider = new_provider(spark, requested_provider)
    if not managed:
        enter(spark, name, path, provider)
        return
    check_enterable(name, path)
    namespace, table = _namespace_and_table(spark, name)
    database = namespace[-1] if namespace else spark.catalog.currentDatabase()
    SparkInternals(spark).enter_managed(database, table, path, provider)


def check_enterable(name: str, path: str) -> None:
    """Raise InvalidOptionError for a path that cannot be entered."""
    if "${" in path:
        raise InvalidOptionError(
            f"The path {path!r} of table {name} holds ${{, where Spark puts in variables of the environment and settings: the "
            "name would lead to another place. Choose another path, or use the table by its path.",
            option="path",
            path=path,
        )


def refresh(spark: Any, entry: Entry) -> None:
    """Give the entry the table's present columns. Spark cannot change them in place: the name is dropped and entered again. This
    is not done for an entry of delta-spark, which takes the columns from the log, nor for a managed table, whose files would be
    deleted with the name. A session with our catalogs reads the columns from the log; it refreshes the entry for other
    sessions."""
    if not entry.is_ours or not entry.external:
        return
    if handled_path(spark, entry.name) is not None:
        return
    path = entry.writable_path()
    if _has_old_columns(entry, spark, spark.read.format(FORMAT).load(path).schema):
        enter_instead(spark, entry.name, path, entry.provider)


def _has_old_columns(entry: Entry, spark: Any, table_schema: StructType) -> bool:
    """Return whether the entry has other columns than the present table."""
    if entry.columns is not None:
        entered_schema = StructType.fromJson(orjson.loads(entry.columns))
        return entered_schema.simpleString() != table_schema.simpleString()
    schema_of_name = spark.table(entry.name).schema
    return metadata_value(schema_of_name, _STALE_KEY) is not None or without_metadata(schema_of_name, CATALOG_KEY) != table_schema


def enter_instead(spark: Any, name: str, path: str, provider: str) -> None:
    """Replace the entry of a name by an external table, whose data stay. Raises the same as `enter`, and before the name is
    dropped if the error can be detected then."""
    check_enterable(name, path)
    current_entry = find(spark, name)
    if current_entry is not None and not current_entry.external:
        raise UnsupportedOperationError(
            f"{name} has become a managed table meanwhile, whose files would go with the name: it stays as it is.", table=name
        )
    spark_sql(spark, f"DROP TABLE IF EXISTS {quoted_name(name)}")
    enter(spark, name, path, provider, if_absent=True)


# ---------------------------------------------------------------- names


def _namespace_and_table(spark: Any, name: str) -> tuple[list[str], str]:
    """Return [spark_catalog, database], or an empty list if the name has no database; and the table's name.

    Raises UnsupportedOperationError for a name outside of the session catalog, InvalidOptionError for a table's name that the
    catalog does not accept.
    """
    *namespace, table = _parts(name)
    if is_of_another_catalog(spark, name) or len(namespace) > 2:
        raise UnsupportedOperationError(
            f"{name} is not in Spark's own catalog ({_SESSION_CATALOG}), the only one in which tables of a Python data source "
            "can stand. Name it spark_catalog.<database>.<table>, or write with save(path).",
            table=name,
        )
    if not _TABLE_NAME.fullmatch(table):
        raise InvalidOptionError(
            f"{table!r} is no valid name for a table: Spark's catalog takes letters, digits and _.",
            error_class="INVALID_SCHEMA_OR_RELATION_NAME",
            sql_state="42602",
            table=name,
        )
    return ([_SESSION_CATALOG, namespace[-1]] if namespace else []), table


def is_of_another_catalog(spark: Any, name: str) -> bool:
    """Return whether Spark looks the name up in a catalog other than spark_catalog: the catalog that the name begins with, or
    else the current one.
    """
    first, *other_parts = _parts(name)
    # A name of three parts begins with a catalog. One of two parts begins with a database, unless a catalog has this name.
    begins_with_catalog = first.lower() == _SESSION_CATALOG or len(other_parts) > 1
    if other_parts and (begins_with_catalog or conf(spark, f"spark.sql.catalog.{first}") is not None):
        catalog: str = first
    else:
        catalog = spark.catalog.currentCatalog()
    return catalog.lower() != _SESSION_CATALOG


def _parts(name: str) -> list[str]:
    """Split `a.`b.c`` into ["a", "b.c"]."""
    parts = _NAME_PART.findall(name)
    if not parts or ".".join(parts) != name:
        raise InvalidOptionError(f"{name!r} is no name of a table.", table=name)
    return [unquoted(part) for part in parts]


def quoted_name(name: str) -> str:
    """Return the name for SQL. Raises InvalidOptionError for a text that is no name."""
    return _quoted(_parts(name))


def _quoted(parts: list[str]) -> str:
    """Return the parts in backticks, with dots between them."""
    return ".".join(map(quoted, parts))
