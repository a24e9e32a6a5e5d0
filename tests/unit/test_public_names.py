"""The names that users' code depends on: a change of one of them needs a change of this list."""

from __future__ import annotations

import inspect

import pytest

import delta_py
import delta_py.errors
import pyspark_pydelta
import spark_plugin
import spark_plugin.exceptions
import spark_plugin.pruning
from delta_py.errors import DeltaError, InvalidOptionError
from delta_py.row_changes.merge import TableMerger
from spark_plugin.options.read_options import read_options

PARAMETERS = {
    delta_py.DeltaTable: ["path", "version", "timestamp", "session_timezone", "store", "storage_options"],
    delta_py.DeltaTable.schema: ["self"],
    delta_py.DeltaTable.files: ["self"],
    delta_py.DeltaTable.history: ["self", "limit"],
    delta_py.DeltaTable.to_arrow: ["self", "columns", "filter", "ignore_missing_files", "verify_checksums"],
    delta_py.DeltaTable.to_batches: ["self", "columns", "filter", "ignore_missing_files", "verify_checksums"],
    delta_py.DeltaTable.to_pandas: ["self", "columns", "filter", "ignore_missing_files", "verify_checksums"],
    delta_py.DeltaTable.__arrow_c_stream__: ["self", "requested_schema"],
    delta_py.DeltaTable.changes: [
        "self",
        "starting_version",
        "ending_version",
        "starting_timestamp",
        "ending_timestamp",
        "columns",
        "filter",
        "ignore_missing_files",
        "verify_checksums",
    ],
    delta_py.DeltaTable.restore: ["self", "target", "ignore_missing_files"],
    delta_py.DeltaTable.delete: ["self", "predicate"],
    delta_py.DeltaTable.update: ["self", "updates", "new_values", "predicate"],
    delta_py.DeltaTable.merge: [
        "self",
        "source",
        "predicate",
        "source_alias",
        "target_alias",
        "truncate_nanoseconds",
        "merge_schema",
    ],
    TableMerger.when_matched_update: ["self", "updates", "predicate"],
    TableMerger.when_matched_update_all: ["self", "predicate", "except_cols"],
    TableMerger.when_matched_delete: ["self", "predicate"],
    TableMerger.when_not_matched_insert: ["self", "updates", "predicate"],
    TableMerger.when_not_matched_insert_all: ["self", "predicate", "except_cols"],
    TableMerger.when_not_matched_by_source_update: ["self", "updates", "predicate"],
    TableMerger.when_not_matched_by_source_delete: ["self", "predicate"],
    TableMerger.execute: ["self"],
    delta_py.write_delta: [
        *("path", "data", "mode", "partition_by", "name", "description", "configuration", "store"),
        "storage_options",
        *("cluster_by", "merge_schema", "overwrite_schema", "replace_where", "partition_overwrite_mode"),
        *("schema_mode", "predicate"),
        *("txn_app_id", "txn_version", "user_metadata", "data_change", "max_records_per_file", "target_file_bytes"),
        *("compression", "isolation_level", "time_zone", "truncate_nanoseconds"),
    ],
    spark_plugin.register: ["spark", "catalogs"],
    spark_plugin.DeltaTable.forPath: ["sparkSession", "path", "hadoopConf"],
    spark_plugin.DeltaTable.isDeltaTable: ["sparkSession", "identifier"],
    spark_plugin.DeltaTable.toDF: ["self"],
    spark_plugin.DeltaTable.alias: ["self", "aliasName"],
    spark_plugin.DeltaTable.history: ["self", "limit"],
    spark_plugin.DeltaTable.detail: ["self"],
    spark_plugin.pruning.status: ["spark"],
}
CONCURRENCY_ERRORS = (
    "DeltaConcurrentModificationException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
)


@pytest.mark.parametrize("function", PARAMETERS, ids=lambda function: function.__qualname__)
def test_public_function_keeps_the_names_of_its_parameters(function: object) -> None:
    names = list(inspect.signature(function).parameters)  # type: ignore[arg-type]
    bound = [name for name in names if name != "self"]
    assert bound == [name for name in PARAMETERS[function] if name != "self"]  # type: ignore[index]


def test_format_is_known_to_spark_by_itself() -> None:
    assert pyspark_pydelta.DefaultSource.name() == "pydelta"


@pytest.mark.parametrize("name", CONCURRENCY_ERRORS)
def test_concurrency_errors_have_the_names_of_delta_spark(name: str) -> None:
    assert issubclass(getattr(delta_py.errors, name), DeltaError)
    assert issubclass(getattr(spark_plugin.exceptions, name), DeltaError)


def test_unknown_option_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidOptionError, match="versionAsOf"):
        read_options({"path": "/t", "versionAsof2": "1"})
