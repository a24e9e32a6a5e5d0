"""deltalake's TableMerger: the clauses of a MERGE, whose order is that of the calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

from delta_py.as_deltalake.arguments import refuse_generated_columns
from delta_py.as_deltalake.arrow_exchange import reader_in
from delta_py.as_deltalake.operations import metrics
from delta_py.as_deltalake.schema import columns_of
from delta_py.as_deltalake.sql_dialects import spark_expression, spark_sql, with_lenient_casts
from delta_py.row_changes.merge import TableMerger as RowsMerger
from delta_py.table import DeltaTable
from delta_py.types.names import quoted, split_name
from delta_py.types.schema import StructField, StructType


class TableMerger:
    """A MERGE: methods add clauses, and `execute` runs the MERGE. source: rows of any library with an Arrow interface. predicate:
    SQL, the condition of the MERGE. merge_schema: the table gets columns that only the source has. is_lenient: values that do not
    fit their column become null. block: makes the `with` block in which `execute` runs the MERGE: with the caller's commit
    properties and deltalake's errors."""

    def __init__(
        self,
        table: DeltaTable,
        source: Any,
        predicate: str,
        source_alias: str | None,
        target_alias: str | None,
        *,
        merge_schema: bool,
        is_lenient: bool,
        block: Callable[[], AbstractContextManager[None]],
    ) -> None:
        reader = reader_in(source)
        self._block, self._schema, self._aliases = block, reader.schema, (target_alias, source_alias)
        self._merge_schema, self._columns = merge_schema, table.struct_type
        self._complete_kinds: set[str] = set()  # kinds with a clause that has no condition, and so takes all remaining rows
        self._lenient_types = table.struct_type if is_lenient else StructType()  # without columns no value is cast
        source_columns = columns_of(reader.schema)
        self._names = _names_in_sql({target_alias or "target": table.struct_type, source_alias or "source": source_columns})
        if merge_schema:
            refuse_generated_columns(table.struct_type, source_columns)
        self._merger = RowsMerger(
            table.snapshot.store,
            reader,
            spark_expression(predicate, self._names),
            source_alias,
            target_alias,
            truncate_nanoseconds=True,
            merge_schema=merge_schema,
            allows_idle_matches=True,
        )

    def when_matched_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Self:
        if self._register_clause("matched", predicate):
            self._merger.when_matched_update(self._by_column(updates), self._in_spark_dialect(predicate))
        return self

    def when_matched_update_all(self, predicate: str | None = None, except_cols: Sequence[str] | None = None) -> Self:
        """The table's columns get the values of the source's columns with the same names; the table's other columns do not
        change. With merge_schema the table also gets the source's other columns.
        """
        if self._register_clause("matched", predicate):
            self._merger.when_matched_update(self._all_source_columns(except_cols), self._in_spark_dialect(predicate))
        return self

    def when_matched_delete(self, predicate: str | None = None) -> Self:
        if self._register_clause("matched", predicate):
            self._merger.when_matched_delete(self._in_spark_dialect(predicate))
        return self

    def when_not_matched_insert(self, updates: Mapping[str, str], predicate: str | None = None) -> Self:
        if self._register_clause("not matched", predicate):
            self._merger.when_not_matched_insert(self._by_column(updates), self._in_spark_dialect(predicate))
        return self

    def when_not_matched_insert_all(self, predicate: str | None = None, except_cols: Sequence[str] | None = None) -> Self:
        """Columns that only the table has get their default, or null."""
        if self._register_clause("not matched", predicate):
            self._merger.when_not_matched_insert(self._all_source_columns(except_cols), self._in_spark_dialect(predicate))
        return self

    def when_not_matched_by_source_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Self:
        if self._register_clause("not matched by source", predicate):
            self._merger.when_not_matched_by_source_update(self._by_column(updates), self._in_spark_dialect(predicate))
        return self

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> Self:
        if self._register_clause("not matched by source", predicate):
            self._merger.when_not_matched_by_source_delete(self._in_spark_dialect(predicate))
        return self

    def execute(self) -> dict[str, Any]:
        """Run the MERGE; returns metrics. A MERGE without a clause changes nothing."""
        with self._block():
            merge_metrics = self._merger.execute()
        files = {
            "num_target_files_scanned": self._merger.files_scanned,
            "num_target_files_skipped_during_scan": self._merger.files_skipped,
        }
        return {**metrics.by_deltalake_names(merge_metrics, metrics.MERGE), **files}

    def _register_clause(self, kind: str, predicate: str | None) -> bool:
        """Note a new clause. Returns whether it can apply to any row: False if an earlier clause of its kind has no condition,
        and so takes all rows; then the caller ignores the new clause. kind: matched, not matched, or not matched by source."""
        can_apply = kind not in self._complete_kinds
        if predicate is None:
            self._complete_kinds.add(kind)
        return can_apply

    # ------------------------------------------------------------ columns

    def _all_source_columns(self, except_cols: Sequence[str] | None) -> dict[str, str]:
        """The assignments of SET * and INSERT *, by column: the source's columns that the table has, or gets with
        merge_schema."""
        source = self._aliases[1] or "source"
        excluded = set(except_cols or ())
        names = [field.name for field in self._schema if field.name not in excluded and self._has_target_column(field.name)]
        updates = {quoted(name): f"{quoted(source)}.{quoted(name)}" for name in names}
        return with_lenient_casts(updates, self._lenient_types)

    def _has_target_column(self, name: str) -> bool:
        """Whether the table has a column of this name, or gets one by merge_schema."""
        return self._merge_schema or self._columns.find(name) is not None

    def _by_column(self, updates: Mapping[str, str]) -> dict[str, str]:
        """The updates in Spark's dialect, by column. Aliases of table and source before the columns' names are removed."""
        by_column = {
            _without_alias(spark_sql(name), self._aliases): spark_expression(value, self._names)
            for name, value in updates.items()
        }
        return with_lenient_casts(by_column, self._lenient_types)

    def _in_spark_dialect(self, predicate: str | None) -> str | None:
        return None if predicate is None else spark_expression(predicate, self._names)


def _without_alias(name: str, aliases: tuple[str | None, str | None]) -> str:
    """`target.id` -> `id`, if `target` is one of the aliases. Any other name does not change."""
    first_name, *other_names = split_name(name)
    return ".".join(map(quoted, other_names)) if other_names and first_name in aliases else name


def _names_in_sql(rows_by_alias: Mapping[str, StructType]) -> StructType:
    """The columns that SQL of the MERGE may name: each alias, as a struct of the columns of its side, and each column by its name
    alone. If several have the same name, the first one counts. rows_by_alias: the columns of the table and of the source."""
    aliases = [StructField(alias, schema) for alias, schema in rows_by_alias.items()]
    columns = [field for schema in rows_by_alias.values() for field in schema.fields]
    fields: dict[str, StructField] = {}
    for field in (*aliases, *columns):
        fields.setdefault(field.name.lower(), field)
    return StructType(tuple(fields.values()))
