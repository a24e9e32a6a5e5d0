"""DESCRIBE DETAIL: one row about a version of a table."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.protocol.clustering import CLUSTERING_DOMAIN, clustering_columns
from delta_py.snapshot import Snapshot
from delta_py.storage.addresses import location_of

_LIST_OF_TEXTS = pa.list_(pa.field("element", pa.string()))
_TIME = pa.timestamp("us", tz="UTC")

DETAIL_SCHEMA = pa.schema(
    [
        ("format", pa.string()),
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("location", pa.string()),
        ("createdAt", _TIME),
        ("lastModified", _TIME),
        ("partitionColumns", _LIST_OF_TEXTS),
        ("clusteringColumns", _LIST_OF_TEXTS),
        ("numFiles", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("tableFeatures", _LIST_OF_TEXTS),
    ]
)


def detail_rows(snapshot: Snapshot) -> pa.Table:
    """One row about a version. location is a URI; lastModified is the version's own time.

    Raises what Snapshot.file_batches raises."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    file_count, size_bytes = 0, 0
    for batch in snapshot.file_batches():
        file_count += batch.files.num_rows
        size_bytes += pc.sum(batch.files["size"]).as_py() or 0
    row = {
        "format": "delta",
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "location": location_of(snapshot.table_root),
        "createdAt": _datetime_of(metadata.created_time_ms),
        "lastModified": _datetime_of(snapshot.timestamp_ms),
        "partitionColumns": list(metadata.partition_columns),
        "clusteringColumns": list(clustering_columns(snapshot.schema, snapshot.domain_metadata().get(CLUSTERING_DOMAIN))),
        "numFiles": file_count,
        "sizeInBytes": size_bytes,
        "properties": sorted(metadata.configuration.items()),
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "tableFeatures": list(snapshot.config.features),
    }
    return pa.Table.from_pylist([row], schema=DETAIL_SCHEMA)


def _datetime_of(milliseconds: int | None) -> dt.datetime | None:
    """The time as a datetime; None for None, and for a time outside the range of Python's datetime."""
    try:
        return None if milliseconds is None else dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
