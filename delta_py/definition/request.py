"""The options of a write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import TYPE_CHECKING, SupportsIndex

from delta_py.commit.prepared import IsolationLevel
from delta_py.errors import InvalidOptionError
from delta_py.object_stores.table_store import NO_RULES, NewTableRules
from delta_py.protocol.parquet_settings import compression_codec
from delta_py.protocol.table_config import TableConfig
from delta_py.types.schema import StructType

if TYPE_CHECKING:
    from delta_py.row_rules.write_state import WriteState

_GREATEST_TRANSACTION_VERSION = 2**63 - 1
# The names of modes in the history, by the names that callers use.
_SAVE_MODES = {
    "error": "ErrorIfExists",
    "errorifexists": "ErrorIfExists",
    "append": "Append",
    "ignore": "Ignore",
    "overwrite": "Overwrite",
}


@dataclass(frozen=True, slots=True)
class AutoCompact:
    """How a commit handles small files. enabled: None for the table's setting. min_files: the number of small files that a
    partition must have. max_file_bytes: approximate size of the compacted files. min_file_bytes: smaller files count as small.
    """

    enabled: bool | None = None
    min_files: int = 50
    max_file_bytes: int = 128 << 20
    min_file_bytes: int = 64 << 20

    def is_on(self, config: TableConfig) -> bool:
        if self.enabled is not None:
            return self.enabled
        return config.properties.boolean("delta.autoOptimize") or config.properties.boolean("delta.autoOptimize.autoCompact")


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The options that a caller passes. They may be invalid or contradictory; `check` reports that.

    mode: error (or errorifexists), append, ignore, overwrite, in any case of letters. partition_by, cluster_by: None if the
    caller did not set them. name, description, configuration, defaults: the parameters of define_table for a table that the write
    creates.
    merge_schema: add the data's new columns to the table; merge_casts: also cast values to the types of its existing columns.
    columns: the columns of a table that the write creates, with their rules; None for the columns of the data.
    overwrite_schema: give the table the data's schema. replace_where: SQL; overwrite only the rows for which it is true.
    checks_replace_where: refuse data for which it is not true.
    partition_overwrite_mode: `static`, or `dynamic` to overwrite only the partitions that the data has. Modes other than
    overwrite ignore overwrite_schema and partition_overwrite_mode, which sessions may set for all writes.
    as_select: the statement whose query gives the rows: create, replace or createOrReplace; the latter two give an existing table
    the definition of a new one, in the same commit. None if the write is no such statement.
    txn_app_id, txn_version: both or none; a write that the table has already recorded does nothing. data_change: False says
    that the rows are only rearranged. max_records_per_file, target_file_bytes, compression: None for the table's setting.
    isolation_level: for this write only. time_zone: the session's, for conversions between texts and times.
    truncate_nanoseconds: cut times down to the microsecond, toward the past; without it a time that has nanoseconds is refused.
    tasks: the maximum number of writing tasks, if known. rule_nonce: identifies the data's hidden columns that hold results of
    the table's rules (row_rules/hidden_rule_columns.py). auto_compact: how the commit handles small files. recorded: more
    parameters of the operation, for the history alone. user_metadata: a text for the history.
    """

    mode: str = "error"
    partition_by: Sequence[str] | None = None
    name: str | None = None
    description: str | None = None
    configuration: Mapping[str, str] | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)
    cluster_by: Sequence[str] | None = None
    merge_schema: bool = False
    merge_casts: bool = False
    overwrite_schema: bool = False
    replace_where: str | None = None
    checks_replace_where: bool = True
    partition_overwrite_mode: str = "static"
    as_select: str | None = None
    txn_app_id: str | None = None
    txn_version: int | None = None
    user_metadata: str | None = None
    data_change: bool = True
    max_records_per_file: int | None = None
    target_file_bytes: int | None = None
    compression: str | None = None
    isolation_level: str | None = None
    time_zone: str = "UTC"
    tasks: int | None = None
    rule_nonce: str | None = None
    auto_compact: AutoCompact = field(default_factory=AutoCompact)
    recorded: Mapping[str, str] = field(default_factory=dict)
    truncate_nanoseconds: bool = False
    columns: StructType | None = None

    def with_file_settings(self, state: WriteState) -> WriteState:
        """The state with the request's file settings: rows, bytes, codec. Raises as compression_codec."""
        layout = replace(
            state.layout,
            max_records_per_file=self.max_records_per_file,
            compression=state.layout.compression if self.compression is None else compression_codec(self.compression),
            target_file_bytes=self.target_file_bytes or state.layout.target_file_bytes,
        )
        return replace(state, layout=layout)

    def following(self, rules: NewTableRules) -> WriteRequest:
        """The request, with the properties that a catalog demands or suggests for a new table. rules: the catalog's. The
        request's properties replace suggested ones."""
        if rules == NO_RULES:
            return self
        return replace(self, configuration=rules.properties(self.configuration), defaults=rules.defaults(self.defaults))

    def check(self) -> None:
        """Check the options. Raises InvalidOptionError for an invalid value (DELTA_ILLEGAL_OPTION, INVALID_SAVE_MODE,
        DELTA_INVALID_ISOLATION_LEVEL), or one that the log cannot hold; and for options that contradict each other
        (DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS, DELTA_OVERWRITE_SCHEMA_WITH_REPLACE_WHERE,
        DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE, DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE).
        """
        mode = self.save_mode
        self._check_texts()
        if str(self.partition_overwrite_mode).lower() not in ("static", "dynamic"):
            raise _invalid_option_error("partitionOverwriteMode", self.partition_overwrite_mode, "static or dynamic")
        if self.replace_where is not None and not self.replace_where.strip():
            raise _invalid_option_error("replaceWhere", self.replace_where, "a condition in SQL, such as \"day = '2024-05-01'\"")
        if self.replace_where is not None and mode != "Overwrite":
            raise InvalidOptionError(
                f"replaceWhere goes with mode overwrite, and the mode is {self.mode}. Nothing was written. Use mode overwrite, "
                "or leave replaceWhere out.",
                option="replaceWhere",
            )
        if mode == "Overwrite":
            self._check_one_kind_of_overwrite()
        numbers: dict[str, object] = {"maxRecordsPerFile": self.max_records_per_file, "targetFileSize": self.target_file_bytes}
        for option, number in numbers.items():
            if number is not None and (not isinstance(number, SupportsIndex) or index(number) <= 0):
                raise _invalid_option_error(option, number, "a whole number of at least 1")
        if self.isolation_level is not None:
            IsolationLevel.parse(self.isolation_level)
        self._check_transaction()

    @property
    def save_mode(self) -> str:
        """The mode as the history names it. Raises InvalidOptionError (INVALID_SAVE_MODE)."""
        save_mode = _SAVE_MODES.get(str(self.mode).lower())
        if save_mode is None:
            raise InvalidOptionError(
                f"There is no write mode {self.mode!r}. Use error, append, overwrite or ignore. Nothing was written.",
                error_class="INVALID_SAVE_MODE",
                sql_state="42000",
                mode=self.mode,
            )
        return save_mode

    @property
    def isolation(self) -> IsolationLevel | None:
        """The isolation level of this write; None for the table's level. Raises InvalidOptionError
        (DELTA_INVALID_ISOLATION_LEVEL)."""
        return None if self.isolation_level is None else IsolationLevel.parse(self.isolation_level)

    @property
    def is_dynamic(self) -> bool:
        return self.partition_overwrite_mode.lower() == "dynamic"

    def _check_one_kind_of_overwrite(self) -> None:
        """Raise InvalidOptionError if more than one option says what an overwrite replaces."""
        is_given_by_option = {
            "replaceWhere": self.replace_where is not None,
            "overwriteSchema": self.overwrite_schema,
            "partitionOverwriteMode=dynamic": self.is_dynamic,
        }
        given_options = [name for name, is_given in is_given_by_option.items() if is_given]
        if len(given_options) > 1:
            mode = " (partitionOverwriteMode=static outweighs a session's setting)" if self.is_dynamic else ""
            raise InvalidOptionError(
                f"{given_options[0]} and {given_options[1]} contradict each other: each says by itself which rows, "
                f"or all, are replaced. Nothing was written. Give one of them{mode}.",
                error_class=_CONTRADICTIONS[given_options[0], given_options[1]],
                sql_state="42613",
                options=given_options,
            )

    def _check_transaction(self) -> None:
        """Raise InvalidOptionError unless txn_app_id and txn_version are both valid, or both None."""
        version = self.txn_version
        if (self.txn_app_id is None) != (version is None):
            present_option, missing_option = ("txnAppId", "txnVersion") if version is None else ("txnVersion", "txnAppId")
            raise InvalidOptionError(
                f"Invalid options for idempotent writes: {present_option} is given without {missing_option}. Nothing was "
                "written. Give both, or none of them, be it as options or as settings of the session.",
                error_class="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
                sql_state="42616",
                option=missing_option,
            )
        if self.txn_app_id == "":
            raise _invalid_option_error("txnAppId", "", "a name of the application that is not empty")
        greatest = _GREATEST_TRANSACTION_VERSION
        if version is not None and (type(version) is not int or not -greatest - 1 <= version <= greatest):
            raise _invalid_option_error("txnVersion", version, "a whole number of 64 bits")

    def _check_texts(self) -> None:
        """Raises InvalidOptionError for text that is not valid Unicode: it has one half of a surrogate pair."""
        texts = {
            "name": self.name,
            "description": self.description,
            "txnAppId": self.txn_app_id,
            "userMetadata": self.user_metadata,
            "replaceWhere": self.replace_where,
            "compression": self.compression,
            "isolationLevel": self.isolation_level,
            **{f"the name of property {key!r}": key for key in self.configuration or {}},
            **{f"property {key!r}": value for key, value in (self.configuration or {}).items()},
        }
        for what, text in texts.items():
            if text is not None and not isinstance(text, str):
                raise InvalidOptionError(f"{what} is {text!r}, and must be text. Nothing was written.", option=what)
            if text is not None and any("\ud800" <= character <= "\udfff" for character in text):
                raise InvalidOptionError(f"{what} is not valid Unicode: {text[:100]!r}. Nothing was written.", option=what)


# The error class of each pair of options that contradict each other.
_CONTRADICTIONS = {
    ("replaceWhere", "overwriteSchema"): "DELTA_OVERWRITE_SCHEMA_WITH_REPLACE_WHERE",
    ("replaceWhere", "partitionOverwriteMode=dynamic"): "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
    ("overwriteSchema", "partitionOverwriteMode=dynamic"): "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
}


def _invalid_option_error(option: str, value: object, expectation: str) -> InvalidOptionError:
    """The error for an invalid value of an option. expectation: what the value must be."""
    return InvalidOptionError(
        f"Invalid value {value!r} for option {option!r}: it must be {expectation}. Nothing was written.",
        option=option,
        value=value,
    )


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """The batch of a stream that a write commits: the table recognizes it by query_id and batch_id. output_mode: `Append`
    or `Complete`. Protocol: Transaction Identifiers.
    """

    query_id: str
    batch_id: int
    output_mode: str
