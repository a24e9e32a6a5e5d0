"""deltalake's Python interface (version 1.6) on top of delta_py: `import delta_py.as_deltalake as deltalake`.

In: code that is written for the package deltalake. Out: the same names, arguments, results and classes of errors.
What cannot be done is refused with what to do instead; docs/from-deltalake.md lists the differences.
"""

from __future__ import annotations

from delta_py.as_deltalake import exceptions as exceptions
from delta_py.as_deltalake import fs as fs
from delta_py.as_deltalake import query as query
from delta_py.as_deltalake import schema as schema
from delta_py.as_deltalake import table as table
from delta_py.as_deltalake import transaction as transaction
from delta_py.as_deltalake import writer as writer
from delta_py.as_deltalake.features import (
    TableFeatures,
    __version__,
    enable_nanosecond_timestamps,
    init_tracing,
    rust_core_version,
)
from delta_py.as_deltalake.properties import BloomFilterProperties, ColumnProperties, WriterProperties
from delta_py.as_deltalake.query import QueryBuilder
from delta_py.as_deltalake.schema import DataType, Field, Schema, VariantType
from delta_py.as_deltalake.table import DeltaTable, Metadata
from delta_py.as_deltalake.transaction import CommitProperties, PostCommitHookProperties, Transaction
from delta_py.as_deltalake.writer import convert_to_deltalake, write_deltalake

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "CommitProperties",
    "DataType",
    "DeltaTable",
    "Field",
    "Metadata",
    "PostCommitHookProperties",
    "QueryBuilder",
    "Schema",
    "TableFeatures",
    "Transaction",
    "VariantType",
    "WriterProperties",
    "__version__",
    "convert_to_deltalake",
    "enable_nanosecond_timestamps",
    "init_tracing",
    "rust_core_version",
    "write_deltalake",
]
