"""Facts about a table that the catalogs get with its columns (java/tables/TableFacts.java), in the same call of a worker.

The facts are JSON text in the metadata of the schema's first field, and the catalog removes them from there. A table without
columns has no facts.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql.types import StructField, StructType

from delta_py.protocol.actions import Protocol
from delta_py.protocol.clustering import CLUSTERING_DOMAIN, clustering_columns
from delta_py.protocol.identity_columns import identity_columns
from delta_py.snapshot import Snapshot
from delta_py.types.column_rules import GENERATION
from spark_plugin.source.pinned import PinnedTable

FACTS_KEY = "pydelta.facts"


def with_table_facts(schema: StructType, pinned: PinnedTable, *, of_writes: bool) -> StructType:
    """Return the schema with the facts in its first field. of_writes: add the fact `needs_save`, which takes longer to compute.
    If it is true, a client of Spark Connect must run an INSERT as a save, because only a save computes generated columns and the
    like.
    """
    if not schema.fields:
        return schema
    first, *other_fields = schema.fields
    facts = _facts(pinned)
    if of_writes:
        facts["needs_save"] = _needs_save(pinned.snapshot)
    metadata = {**(first.metadata or {}), FACTS_KEY: json.dumps(facts)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *other_fields])


def _facts(pinned: PinnedTable) -> dict[str, Any]:
    """Return the facts that every table has, under the names that TableFacts.java reads: `path` is the table's path without a
    version such as `@v12`, and `travels` is true if the read names a version or a timestamp (time travel)."""
    snapshot, options = pinned.snapshot, pinned.options
    metadata, protocol = snapshot.metadata, snapshot.protocol
    clustered = "clustering" in snapshot.config.features
    domain = snapshot.domain_metadata().get(CLUSTERING_DOMAIN) if clustered else None
    return {
        "path": options.path,
        "version": snapshot.version,
        "travels": options.version is not None or options.timestamp_ms is not None,
        "description": metadata.description,
        "partition_columns": list(metadata.partition_columns),
        "clustering_columns": list(clustering_columns(snapshot.schema, domain)),
        "properties": {**metadata.configuration, **_features(protocol)},
        "reader_version": protocol.min_reader_version,
        "writer_version": protocol.min_writer_version,
        "has_identity": bool(identity_columns(snapshot.schema)),
    }


def _needs_save(snapshot: Snapshot) -> bool:
    """Return whether new rows of the table need what only a save provides (dataframe_api/spark_rule_columns.py): identity values,
    generated columns, or rules that Spark computes because delta_py cannot."""
    from delta_py.row_rules.hidden_rule_columns import rules_for_spark  # reads need none of this

    schema = snapshot.schema
    if identity_columns(schema) or any(GENERATION in field.metadata for field in schema.fields):
        return True
    return rules_for_spark(snapshot.config, schema.names, "UTC") is not None


def _features(protocol: Protocol) -> dict[str, str]:
    """Return the features that the protocol names, as properties, as SHOW TBLPROPERTIES shows them."""
    names = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    return {f"delta.feature.{name}": "supported" for name in sorted(names)}
