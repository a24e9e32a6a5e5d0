"""Runs an operation of delta_py as deltalake would: with the caller's commit properties, and with deltalake's errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_py.as_deltalake.arguments import named_arguments
from delta_py.as_deltalake.exceptions import deltalake_errors
from delta_py.as_deltalake.properties import WriterProperties
from delta_py.as_deltalake.transaction import commit_as
from delta_py.definition.definition_settings import DefinitionSettings, definition_settings
from delta_py.protocol.column_mapping import physical_path
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.file_settings import file_settings
from delta_py.types.schema import ArrayType, MapType, leaves

if TYPE_CHECKING:
    from delta_py.table import DeltaTable

DEFINITIONS = DefinitionSettings(
    allows_any_name=True,
    enabled_features=frozenset({"timestampNtz"}),
    prefers_versions=True,
    lists_used_features=True,
    keeps_not_null=True,
)
"""How deltalake defines tables, where that differs from delta_py's own way (definition/definition_settings.py)."""


@contextmanager
def operation(
    config: TableConfig | None, properties: Mapping[str, Any], writer_properties: WriterProperties | None = None
) -> Iterator[None]:
    """Operations in the block use the caller's properties, define tables as deltalake does, and raise deltalake's errors.

    config: of the table whose files are written; None if that is not known, or if there are no writer_properties. properties:
    commit_properties, post_commithook_properties, operation_name.
    """
    files = nullcontext() if writer_properties is None else _file_settings(config, writer_properties)
    with (
        deltalake_errors(),
        definition_settings(DEFINITIONS),
        commit_as(
            properties.get("commit_properties"),
            properties.get("post_commithook_properties"),
            properties.get("operation_name"),
        ),
        files,
    ):
        yield


def _file_settings(config: TableConfig | None, properties: WriterProperties) -> Any:
    """A block whose Parquet files get these properties. Properties of columns need the config, which knows their names in
    files."""
    return file_settings(properties.file_settings([] if config is None else file_columns(config)))


def file_columns(config: TableConfig) -> list[str]:
    """The columns of the table's data files that hold values, without those in arrays and maps: their physical paths, dotted."""
    schema, mode = config.schema, config.column_mapping_mode
    paths = [path for path, leaf in leaves(schema) if not isinstance(leaf.data_type, ArrayType | MapType)]
    return [".".join(physical_path(schema, path, mode)) for path in paths if path[0] not in config.partition_columns]


@contextmanager
def table_operation(
    table: DeltaTable, keywords: Mapping[str, Any], writer_properties: WriterProperties | None = None
) -> Iterator[None]:
    """As `operation`, for a block that changes a table. After the block, the object `table` is at the newest version. keywords:
    the properties of `operation`."""
    with operation(table.snapshot.config, keywords, writer_properties):
        yield
        table.update_incremental()


@dataclass(frozen=True, slots=True)
class TableSession:
    """Makes the `with` blocks in which operations change a table."""

    as_delta: DeltaTable

    def block(
        self,
        method: str,
        args: Sequence[Any],
        order: Sequence[str],
        commit_properties: Any = None,
        post_commithook_properties: Any = None,
        writer_properties: WriterProperties | None = None,
        operation_name: str | None = None,
    ) -> AbstractContextManager[None]:
        """The block for one call of a method. args: the arguments that the caller passed by position, as older versions of
        deltalake allowed. order: their names. operation_name: the operation's name in the history; None for its own."""
        keywords = {"commit_properties": commit_properties, "post_commithook_properties": post_commithook_properties}
        properties = {**named_arguments(method, args, order, keywords), "operation_name": operation_name}
        return table_operation(self.as_delta, properties, writer_properties)
