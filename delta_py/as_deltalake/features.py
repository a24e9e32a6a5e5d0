"""Table features by deltalake's names, versions, and the functions of deltalake that concern the whole process."""

from __future__ import annotations

from enum import Enum

from delta_py.errors import UnsupportedOperationError
from delta_py.release import own_version

__version__ = "1.6"
"""The version of deltalake whose interface this is. rust_core_version tells the version of pydelta."""


class TableFeatures(Enum):
    """The table features by deltalake's names. The values are the names in the protocol."""

    ColumnMapping = "columnMapping"
    DeletionVectors = "deletionVectors"
    TimestampWithoutTimezone = "timestampNtz"
    V2Checkpoint = "v2Checkpoint"
    AppendOnly = "appendOnly"
    Invariants = "invariants"
    CheckConstraints = "checkConstraints"
    ChangeDataFeed = "changeDataFeed"
    GeneratedColumns = "generatedColumns"
    IdentityColumns = "identityColumns"
    RowTracking = "rowTracking"
    DomainMetadata = "domainMetadata"
    IcebergCompatV1 = "icebergCompatV1"
    TimestampNanos = "timestampNanos"
    VariantType = "variantType"
    VariantTypePreview = "variantType-preview"


def rust_core_version() -> str:
    """The version of the implementation: `pydelta-0.1.0`. Nothing here is in Rust."""
    return f"pydelta-{own_version()}"


def init_tracing(endpoint: str | None = None) -> None:
    """In deltalake, send traces to an OpenTelemetry endpoint. Here it always raises UnsupportedOperationError."""
    raise UnsupportedOperationError(
        "pydelta sends no OpenTelemetry traces. Its messages come through the logger `delta_py` of Python's logging."
    )


def enable_nanosecond_timestamps() -> None:
    """In deltalake, write times with nanoseconds. Here it always raises UnsupportedOperationError."""
    raise UnsupportedOperationError(
        "pydelta has no column type for nanoseconds: the Delta protocol does not define one. Times are cut to microseconds. "
        "Store nanoseconds as bigint."
    )
