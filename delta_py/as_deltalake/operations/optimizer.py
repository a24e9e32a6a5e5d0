"""deltalake's TableOptimizer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from delta_py.as_deltalake.arguments import HOOKS_FIRST
from delta_py.as_deltalake.exceptions import raises_deltalake_errors
from delta_py.as_deltalake.operations import metrics
from delta_py.as_deltalake.operations.sessions import TableSession
from delta_py.as_deltalake.properties import WriterProperties
from delta_py.exchange.partition_filters import partition_condition

_MOST_BYTES = 2**63 - 1
_TARGET_BYTES = 100 * 1024 * 1024  # of tables without delta.targetFileSize


@raises_deltalake_errors
class TableOptimizer:
    """Rewrites small files as larger ones. max_concurrent_tasks, max_spill_size, max_temp_directory_size have no effect.
    min_commit_interval: with any value, each group of files that becomes one file gets its own commit; None for one commit of
    all files."""

    def __init__(self, session: TableSession) -> None:
        self._table, self._block = session.as_delta, session.block

    def compact(
        self,
        partition_filters: Any = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *args: Any,
        commit_properties: Any = None,
        post_commithook_properties: Any = None,
    ) -> dict[str, Any]:
        target_bytes, batch_bytes = self._target_bytes(target_size), _batch_bytes(min_commit_interval)
        with self._block("compact", args, HOOKS_FIRST, commit_properties, post_commithook_properties, writer_properties):
            optimizer = self._table.optimize
            metrics_of_run = optimizer.compact(
                self._partition_condition(partition_filters), target_file_bytes=target_bytes, batch_bytes=batch_bytes
            )
            return metrics.optimize_metrics(metrics_of_run, "preserveLocality")

    def z_order(
        self,
        columns: Iterable[str],
        partition_filters: Any = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *args: Any,
        commit_properties: Any = None,
        post_commithook_properties: Any = None,
    ) -> dict[str, Any]:
        target_bytes, batch_bytes = self._target_bytes(target_size), _batch_bytes(min_commit_interval)
        with self._block("z_order", args, HOOKS_FIRST, commit_properties, post_commithook_properties, writer_properties):
            optimizer = self._table.optimize
            condition = self._partition_condition(partition_filters)
            metrics_of_run = optimizer.z_order(list(columns), condition, target_file_bytes=target_bytes, batch_bytes=batch_bytes)
            return metrics.optimize_metrics(metrics_of_run, "zOrder")

    def _target_bytes(self, target_size: int | None) -> int:
        """The size of new files: the caller's, or else the table's. Raises ValueError for a size that no file can have."""
        if target_size is None:
            return self._table.snapshot.config.properties.size("delta.targetFileSize", _TARGET_BYTES)
        if not 0 < target_size <= _MOST_BYTES:
            raise ValueError(f"target_file_size must be between 1 and {_MOST_BYTES} bytes.")
        return target_size

    def _partition_condition(self, partition_filters: Any) -> str | None:
        """SQL for filters (column, operator, value) of partitions; None if there are none."""
        config = self._table.snapshot.config
        return partition_condition(config.schema, config.partition_columns, partition_filters or ())


def _batch_bytes(min_commit_interval: int | timedelta | None) -> int | None:
    """How many bytes of files one commit rewrites at least: None for one commit of all files; 1 byte so that each group of files
    that becomes one file is a commit."""
    return None if min_commit_interval is None else 1
