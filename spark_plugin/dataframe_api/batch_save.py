"""One batch write on its way to Spark: a Save, made by each of the writing methods, and `to(path)`.

Spark's analyzer accepts only the modes append and overwrite for a Python source, and neither partitioning nor clustering.
So these travel as options, on a new writer of Spark.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyspark.errors import AnalysisException

from delta_py.errors import DeltaError, InvalidOptionError, UnsupportedTableFeatureError
from delta_py.protocol.identity_columns import identity_columns
from delta_py.snapshot import Snapshot
from delta_py.storage.store_options import is_storage_option
from delta_py.types.names import quoted
from spark_plugin.cached_tables import refresh_cached
from spark_plugin.data_source import FORMAT
from spark_plugin.dataframe_api.spark_rule_columns import rules_of_table, with_rule_columns
from spark_plugin.dml.store_assignment import overflow_as_delta_error
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.internals.wrapping import original
from spark_plugin.merge.matching import MATCHING_OPTIONS, Matching, matching_of
from spark_plugin.options.common import AS_SELECT, CLUSTER_BY, MODE, PARTITION_BY, RULE_NONCE, SESSION, TASKS, VIEW
from spark_plugin.options.private import refuse_private
from spark_plugin.options.settings import TablePath, active, check_condition_text, conf, reset_transaction, write_settings
from spark_plugin.options.write_options import write_options
from spark_plugin.session_source import private
from spark_plugin.tasks.arrow_batches import unweighed

OPTIMIZE_CONF = "spark.databricks.delta.optimizeWrite.enabled"
_OPTIMIZE_PROPERTY = "delta.autoOptimize.optimizeWrite"


@dataclass(frozen=True, slots=True)
class AsSelect:
    """The definition of the table that a CREATE or REPLACE TABLE ... AS SELECT statement fills. kind: create, replace or
    createOrReplace. description: the table's comment. properties: the table's, Delta's and others."""

    kind: str
    description: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Save:
    """A batch write with all that the user asked for. frame: the rows. mode: append, overwrite, ignore or error. options: by
    lower-case name, as (name in the user's spelling, value). partition_by, cluster_by: None if not given. callback: the
    information that Spark Connect's writer passes to its DataFrame; None in classic sessions. rule_nonce: a part of the names of
    hidden columns of the frame, in which Spark computed the results of the table's rules; None if there are no such columns.
    matching: which rows an overwrite replaces, if a caller has decided this; None if the options replaceUsing and replaceOn
    decide. as_select: the table definition of an AS SELECT statement, else None. provider: of the name in the catalog, if the
    write makes one.

    Raises InvalidOptionError if the options contain private ones of pydelta.
    """

    frame: Any
    mode: str
    options: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    partition_by: Sequence[str] | None = None
    cluster_by: Sequence[str] | None = None
    callback: Any = None
    rule_nonce: str | None = None
    as_select: AsSelect | None = None
    matching: Matching | None = None
    provider: str | None = None

    def __post_init__(self) -> None:
        refuse_private(self.options, "This write")

    @property
    def spark(self) -> Any:
        return self.frame.sparkSession

    def checked(self) -> Save:
        """Return itself. Raises InvalidOptionError for a user's condition that the session's parser would read differently."""
        check_condition_text(self.spark, "replaceWhere", self.option("replaceWhere"))
        return self

    def option(self, name: str) -> str | None:
        """Return an option's value as text, `true` and `false` for booleans; None if the option is not set."""
        name_and_value = self.options.get(name.lower())
        if name_and_value is None:
            return None
        _, value = name_and_value
        return str(value).lower() if isinstance(value, bool) else str(value)

    def with_options(self, **options: str) -> Save:
        return replace(self, options={**self.options, **{name.lower(): (name, value) for name, value in options.items()}})

    def without(self, name: str) -> Save:
        return replace(self, options={key: value for key, value in self.options.items() if key != name.lower()})

    def to(self, path: str | None) -> None:
        """Write. path: None if the option `path` contains it.

        If pydelta cannot evaluate the table's rules itself, the write is refused before anything runs. Then, if Spark can, it
        computes the rules as hidden columns, and the write is tried once more.
        """
        matching = self.row_matching() if self.mode == "overwrite" else None
        if matching is not None:
            self._replace(path, matching)
        else:
            self._write_or_compute(path)
        # Without these two options the write has used the transaction of the session's settings.
        if "txnversion" not in self.options and "txnappid" not in self.options:
            reset_transaction(self.spark)
        refresh_cached(self.spark, None, path or self.option("path"))

    def _write_or_compute(self, path: str | None) -> None:
        """Write. If pydelta refuses because it cannot compute the result of a rule, let Spark compute it and write again."""
        try:
            self._write(path)
        except UnsupportedTableFeatureError as error_without_rules:
            save_with_rules = self._with_rule_columns(path, error_without_rules)
            if save_with_rules is None:
                raise
            with overflow_as_delta_error():
                save_with_rules._write(path)

    def row_matching(self) -> Matching | None:
        """Return which rows an overwrite replaces because rows of the frame match them; None for any other write."""
        return matching_of(self._option_texts()) if self.matching is None else self.matching

    def _option_texts(self) -> dict[str, str]:
        """Return the options as text, by lower-case name."""
        return {name: str(self.option(name)) for name in self.options}

    def _replace(self, path: str | None, matching: Matching) -> None:
        """Replace the rows that match rows of the frame."""
        from spark_plugin.merge.replace_matching import replace_matching  # imports all of MERGE, which few sessions need

        table = self.table_path(path or self.option("path") or "")
        other_options = {name: text for name, text in self._option_texts().items() if name not in MATCHING_OPTIONS}
        request = write_options({**other_options, "path": table.url, **self._private_options(table.url)}, overwrite=True).request
        # INSERT and insertInto decide the matching themselves, after they have cast the values to the table's types.
        replace_matching(self.spark, table, self.frame, matching, request, requires_same_types=self.matching is None)

    def _with_rule_columns(self, path: str | None, original_error: UnsupportedTableFeatureError) -> Save | None:
        """Return the save with hidden columns in which Spark computes the results of rules; None if this does not help.
        original_error: the error of the save without them, which is also raised if Spark cannot compute the rules.
        """
        target = path or self.option("path")
        if target is None or (self.option("overwriteSchema") or "false").lower() == "true":
            return None
        rules = rules_of_table(self.spark, self.table_path(target), self.frame)
        if rules is None:
            return None
        nonce = secrets.token_hex(16)  # so that no column of the user's frame can pass for a result
        try:
            frame = with_rule_columns(self.frame, rules, nonce)
        except AnalysisException as error:
            raise original_error from error
        return None if frame is None else replace(self, frame=frame, rule_nonce=nonce)

    def _write(self, path: str | None) -> None:
        """Call Spark's own `save`, on a new writer with the options that pydelta adds."""
        target = path or self.option("path")
        is_driver = adapter_of(self.spark).is_driver
        snapshot = None if target is None or not is_driver else _load_snapshot(self.spark, self.table_path(target))
        frame = _rebalanced_frame(self, target, snapshot)
        writer = self._spark_writer(frame, target)
        tasks = _task_count(frame, snapshot)
        if tasks is not None:
            writer = writer.option(TASKS, str(tasks))
        with active(self.spark), unweighed(self.spark, frame.schema):
            original(type(writer), "save")(writer, path)

    def table_path(self, path: str) -> TablePath:
        """Return the path with those options of this write that concern access to the store."""
        return TablePath(path, {name: str(value) for name, (_, value) in self.options.items() if is_storage_option(name)})

    def _private_options(self, path: str | None) -> dict[str, str]:
        """Return the options that pydelta adds to those of the caller: mode, partitioning and the session's settings."""
        private_options = {MODE: self.mode, SESSION: write_settings(self.spark, path)}
        for name, columns in ((PARTITION_BY, self.partition_by), (CLUSTER_BY, self.cluster_by)):
            if columns is not None:
                private_options[name] = json.dumps(list(columns))
        return private_options

    def _spark_writer(self, frame: Any, target: str | None) -> Any:
        """Return Spark's own writer with the mode, the user's options and ours."""
        writer = adapter_of(self.spark).new_writer(frame, self.callback).format(FORMAT)
        writer = writer.mode("overwrite" if self.mode == "overwrite" else "append")
        for key, value in self.options.values():
            writer = writer.option(key, value)
        private_options = self._private_options(target)
        if self.rule_nonce is not None:
            private_options[RULE_NONCE] = self.rule_nonce
        if self.as_select is not None:
            private_options[AS_SELECT] = json.dumps(asdict(self.as_select))
        return writer.options(**private(self.spark, private_options))


# ---------------------------------------------------------------- optimizeWrite


def _rebalanced_frame(save: Save, path: str | None, snapshot: Snapshot | None) -> Any:
    """Return the DataFrame of the save. For an optimized write Spark redistributes its rows: a few equal portions, one task each,
    and the rows of a partition in one task unless they are many. Spark's adaptive execution measures the portions. path: of the
    table; None if unknown. snapshot: of the table; None if there is none or if only the server can read it."""
    if not _is_optimized(save, snapshot):
        return save.frame
    from pyspark.sql import functions as F

    columns = _partition_columns(save, path, snapshot)
    if not columns and not _combines_small_partitions(save.spark):
        return save.frame  # Spark would make as many portions as it has shuffle partitions, however small they are
    return save.frame.hint("rebalance", *(F.col(quoted(name)) for name in columns))


def _is_optimized(save: Save, snapshot: Snapshot | None) -> bool:
    """Return whether the option, else the session's setting, else the table's property requests an optimized write. Over Spark
    Connect the table is on the server's side, and reading a property would cost as much as a small write: there the property
    counts only if it is an option."""
    setting = save.option("optimizeWrite") or conf(save.spark, OPTIMIZE_CONF) or save.option(_OPTIMIZE_PROPERTY)
    if setting is None and snapshot is not None:
        properties = snapshot.metadata.configuration
        setting = next((value for name, value in properties.items() if name.lower() == _OPTIMIZE_PROPERTY.lower()), None)
    if setting is not None and setting.lower() not in ("true", "false"):
        raise InvalidOptionError(
            f"Invalid value {setting!r} for option 'optimizeWrite': it must be 'true' or 'false'.",
            option="optimizeWrite",
            value=setting,
        )
    return setting is not None and setting.lower() == "true"


def _combines_small_partitions(spark: Any) -> bool:
    """Return whether Spark's adaptive execution combines small shuffle partitions."""
    names = ("spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled")
    return all((conf(spark, name) or "true").lower() == "true" for name in names)


def _partition_columns(save: Save, path: str | None, snapshot: Snapshot | None) -> list[str]:
    """Return the partition columns of the table that the frame has."""
    partition_columns = save.partition_by
    if partition_columns is None and path is not None:
        partition_columns = _table_partitioning(save.spark, path, snapshot)
    frame_columns = {name.lower(): name for name in save.frame.columns}
    return [frame_columns[name.lower()] for name in partition_columns or () if name.lower() in frame_columns]


def _table_partitioning(spark: Any, path: str, snapshot: Snapshot | None) -> Sequence[str]:
    """Return the partition columns of an existing table, or none if there is no table; over Spark Connect a job reads them."""
    if adapter_of(spark).is_driver:
        return () if snapshot is None else snapshot.metadata.partition_columns
    try:
        row = spark.read.format(FORMAT).options(**private(spark, {VIEW: "detail"})).load(path).select("partitionColumns").first()
    except DeltaError:  # the write will meet the same error, and report it
        return ()
    return tuple(row["partitionColumns"])


def _load_snapshot(spark: Any, table: TablePath) -> Snapshot | None:
    """Load the newest version. Returns None if there is no table, or none that can be read: the write will detect this and report
    it."""
    try:
        return Snapshot.load(table.open_store(spark))
    except (DeltaError, OSError):
        return None


# ---------------------------------------------------------------- identity columns


def _task_count(frame: Any, snapshot: Snapshot | None) -> int | None:
    """Return how many tasks will write into a table with identity columns, so that its numbers have no gaps. None for other
    tables, and if the number of tasks is known only when the rows are computed."""
    if snapshot is None or not identity_columns(snapshot.schema):
        return None
    return SparkInternals(frame.sparkSession).known_partition_count(frame)
