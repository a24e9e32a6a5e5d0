"""Secondary indexes of a table: create, refresh, drop and list them.

    TableIndexes(store).create("user.id")        # or DeltaTable(path).index.create("user.id")
    TableIndexes(store).refresh()                # covers new files, merges small segments, forgets removed files

Segments are written first, and the log names them afterwards, in a commit that holds only the index's domain. So no data commit
can conflict over an index, and any failure leaves the table unchanged. Files that no segment covers are read as without an index.
refresh deletes segments that no index names when they are a day old: another refresh may be about to commit younger ones.
Protocol: Domain Metadata.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.commit.transaction import Transaction
from delta_py.definition.protocols import with_features
from delta_py.errors import (
    CommitOutcomeUnknownError,
    CorruptTableError,
    DeltaConcurrentModificationException,
    DeltaError,
    InvalidOptionError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from delta_py.index.definition import DIRECTORY, PREFIX, IndexDefinition, definitions_of, match_name
from delta_py.index.hashing import value_kind
from delta_py.index.segments import FILES_SCHEMA
from delta_py.index_commands.index_build import (
    BuildLimits,
    BuiltIndex,
    IndexBuild,
    covered_mask,
    files_without_vectors,
    find_indexed_column,
    is_usable,
    open_segments,
)
from delta_py.protocol.actions import DomainMetadata
from delta_py.protocol.column_mapping import physical_path
from delta_py.protocol.table_config import Operation
from delta_py.snapshot import Snapshot
from delta_py.storage.storage_errors import raises_storage_errors
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import StructType, find_named, find_path, type_name
from delta_py.write.data_files import delete_files

_log = logging.getLogger("delta_py")

_MAX_CONFLICTS = 20  # with other writers; then an operation gives up
_ORPHAN_MS = 24 * 3_600_000  # the age from which a segment that no index names is deleted

# files: those of the table's version that the index covers; uncovered: the others. usable: whether its column is unchanged.
INDEXES_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("column", pa.string()),
        ("files", pa.int64()),
        ("uncovered", pa.int64()),
        ("segments", pa.int64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("usable", pa.bool_()),
    ]
)


@raises_storage_errors(lambda indexes: indexes._store.root)
class TableIndexes:
    """The indexes of a table's newest version. clock_ms: ms since 1970, for tests."""

    def __init__(self, store: ObjectStore, clock_ms: Callable[[], int] | None = None) -> None:
        self._store = store
        self._clock_ms = clock_ms or (lambda: time.time_ns() // 1_000_000)

    def create(self, column: str, name: str | None = None) -> int:
        """Index the values of a column; returns the version.

        column: dotted if it is in a struct. name: letters, digits and `_`; None for one derived from the column's name.
        The table gets the feature domainMetadata, if it lacks it. Raises SchemaMismatchError (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA)
        for a column that does not exist; UnsupportedOperationError for a column that cannot be indexed, and if the name or the
        column already has an index (INDEX_ALREADY_EXISTS); InvalidOptionError for an invalid name;
        UnsupportedTableFeatureError for a table that may not be written; what reading raises.
        """
        snapshot = self._load()
        definition = _new_definition(snapshot, column, name)
        built = IndexBuild(snapshot, definition, BuildLimits()).run()

        def definition_at(newest: Snapshot) -> IndexDefinition | None:
            _new_definition(newest, column, name)  # raises if another writer has made such an index, or dropped the column
            return built.definition

        version = self._commit("CREATE INDEX", snapshot, built, definition_at, {"name": definition.name, "column": column})
        assert version is not None
        return version

    def drop(self, name: str) -> int:
        """Drop an index and delete its segments; returns the version. Raises UnsupportedOperationError (INDEX_NOT_FOUND)."""
        conflict_count = 0
        while True:
            snapshot = self._load()
            domain = _domain_of(snapshot, name)
            transaction = Transaction(snapshot).set_domain(DomainMetadata(domain.domain, domain.configuration, removed=True))
            try:
                version = transaction.commit("DROP INDEX", {"name": domain.domain.removeprefix(PREFIX)})
            except DeltaConcurrentModificationException:
                conflict_count += 1
                if conflict_count == _MAX_CONFLICTS:
                    raise
                continue
            definitions, _ = definitions_of({domain.domain: domain})
            delete_files(self._store, [segment.path for index in definitions for segment in index.segments])
            return version

    def refresh(self, name: str | None = None) -> int:
        """Cover new files, merge small segments into larger ones, forget removed files; for one index, or for all. Returns the
        newest version.

        Segments that no index names are deleted when they are a day old. Raises as create, and UnsupportedOperationError
        (INDEX_NOT_FOUND). If an index cannot be refreshed, because its column is gone or has another type, the others are
        refreshed first, and then its error is raised.
        """
        snapshot = self._load()
        version = snapshot.version
        definitions, unknown = definitions_of(snapshot.domain_metadata())
        if name is not None:
            stored_name = _domain_of(snapshot, name).domain.removeprefix(PREFIX)
            definitions = [definition for definition in definitions if definition.name == stored_name]
            if stored_name in unknown:
                raise _unknown_format_error(snapshot, stored_name, unknown[stored_name])
        errors: list[SchemaMismatchError | UnsupportedOperationError] = []
        for definition in definitions:
            try:
                version = max(version, self.cover(definition.name, BuildLimits()))
            except (SchemaMismatchError, UnsupportedOperationError) as error:
                if is_usable(Snapshot.load(self._store).config, definition):
                    raise  # the column is not the reason
                errors.append(error)
        self._delete_orphans()
        if errors:
            raise errors[0]
        return version

    def list(self) -> pa.Table:
        """INDEXES_SCHEMA, by name. For an index that this version does not understand, only its name."""
        snapshot = Snapshot.load(self._store)
        definitions, unknown = definitions_of(snapshot.domain_metadata())
        table_files = files_without_vectors(snapshot) if definitions else pa.table({})
        rows = [_index_row(snapshot, definition, table_files) for definition in definitions]
        rows += [{"name": name, "usable": False} for name in unknown]
        return pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["name"])), INDEXES_SCHEMA)

    def cover(self, name: str, limits: BuildLimits) -> int:
        """Cover new files of one index and merge its segments, as refresh, but do at most the work that the limits allow; returns
        the newest version. Plans again if another refresh was faster."""
        conflict_count = 0
        while True:
            snapshot = self._load()
            definition = next(
                (candidate for candidate in definitions_of(snapshot.domain_metadata())[0] if candidate.name == name), None
            )
            if definition is None:  # another writer has dropped the index in the meantime
                return snapshot.version
            current = _for_current_column(snapshot, definition)
            built = IndexBuild(snapshot, current, limits).run()
            if not built.has_changes:
                return snapshot.version
            definition_at = partial(_with_new_segments, built=built, planned=definition)
            version = self._commit("REFRESH INDEX", snapshot, built, definition_at, {"name": name})
            if version is not None:
                return version
            conflict_count += 1
            if conflict_count == _MAX_CONFLICTS:
                raise DeltaConcurrentModificationException(
                    f"The index {name} of the table at {self._store.root} was changed by others {conflict_count} times while it "
                    "was refreshed. The table is as it was. Run it again when fewer are at work.",
                    error_class="DELTA_CONCURRENT_DOMAIN_METADATA",
                )

    # ------------------------------------------------------------ helpers

    def _load(self) -> Snapshot:
        """The newest version, for a command that will commit. Raises if the table may not be written."""
        snapshot = Snapshot.load(self._store)
        snapshot.config.require(Operation.WRITE)
        snapshot.check_last_commit()
        return snapshot

    def _commit(
        self,
        operation: str,
        snapshot: Snapshot,
        built: BuiltIndex,
        definition_at: Callable[[Snapshot], IndexDefinition | None],
        parameters: Mapping[str, str],
    ) -> int | None:
        """Commit the index that `definition_at` returns for the newest version. If it returns None, delete the new segments and
        return None. Raises as Transaction.commit; the new segments stay if they may be committed nevertheless.
        """
        conflict_count = 0
        try:
            while True:
                definition = definition_at(snapshot)
                if definition is None:
                    delete_files(self._store, built.new_paths)
                    return None
                transaction = Transaction(snapshot).set_domain(definition.as_domain())
                protocol = with_features(snapshot.protocol, {"domainMetadata"})
                if protocol != snapshot.protocol:
                    transaction.set_protocol(protocol)
                metrics = {"numSegmentsAdded": len(built.new_segments), "numSegmentsRemoved": len(built.replaced_segments)}
                try:
                    return transaction.commit(operation, parameters, metrics=metrics)
                except DeltaConcurrentModificationException:
                    conflict_count += 1
                    if conflict_count == _MAX_CONFLICTS:
                        raise
                snapshot = self._load()
        except (CommitOutcomeUnknownError, CorruptTableError):  # the commit may exist and name the new segments, so they stay
            raise
        except (DeltaError, OSError):
            delete_files(self._store, built.new_paths)
            raise

    def _delete_orphans(self) -> None:
        """Delete old files of segments that no index names. Young files stay: another refresh may commit them soon. Files of
        indexes that this version does not understand stay too."""
        oldest_ms = self._clock_ms() - _ORPHAN_MS
        old_paths = {info.path for info in self._store.list_recursive(DIRECTORY) if info.modification_time_ms < oldest_ms}
        if not old_paths:
            return
        definitions, unknown = definitions_of(Snapshot.load(self._store).domain_metadata())
        segment_paths = {segment.path for definition in definitions for segment in definition.segments}
        unknown_prefixes = tuple(f"{DIRECTORY}/{name}/" for name in unknown)
        orphans = sorted(path for path in old_paths - segment_paths if not path.startswith(unknown_prefixes))
        delete_files(self._store, orphans)
        if orphans:
            _log.info("%s: %d files of indexes that no index names were deleted", self._store.root, len(orphans))


def _new_definition(snapshot: Snapshot, column: str, name: str | None) -> IndexDefinition:
    """The definition of a new index, without segments. column, name: as for create. Raises as create, if the column cannot have
    an index, the name is invalid, or the table has such an index."""
    schema, config = snapshot.schema, snapshot.config
    path_fields = find_named(schema, column)
    path = tuple(field.name for field in path_fields)
    if path[0] in config.partition_columns:
        raise _unindexable_error(column, "is a partition column", "Filters on it choose files without an index.")
    kind = value_kind(path_fields)
    if kind is None:
        type_text = "a struct" if isinstance(path_fields[-1].data_type, StructType) else type_name(path_fields[-1].data_type)
        raise _unindexable_error(
            column, f"is {type_text}, whose values are not compared by what is stored", "Choose another column."
        )
    name = re.sub(r"[^A-Za-z0-9_]", "_", ".".join(path)) if name is None else name
    if match_name(name) is None:
        raise InvalidOptionError(
            f"{name!r} cannot be the name of an index: give up to 100 letters, digits and _. Nothing was changed.", option="name"
        )
    domains = snapshot.domain_metadata()
    existing_domains = [domain for domain in domains if domain.lower() == f"{PREFIX}{name}".lower()]
    physical = physical_path(schema, path, config.column_mapping_mode)
    existing_domains += [index.domain for index in definitions_of(domains)[0] if index.column == physical]
    if existing_domains:
        existing_name = existing_domains[0].removeprefix(PREFIX)
        raise UnsupportedOperationError(
            f"The index {existing_name} already exists: an index {name} on {column} of the table at {snapshot.table_root} "
            "cannot be made. Nothing was changed. Refresh that one, or drop it first.",
            error_class="INDEX_ALREADY_EXISTS",
            sql_state="42710",
            index=existing_name,
        )
    return IndexDefinition(name, physical, kind)


def _unindexable_error(column: str, what: str, remedy: str) -> UnsupportedOperationError:
    """The error for a column that cannot have an index. what: the reason, as a predicate. remedy: what to do."""
    return UnsupportedOperationError(
        f"The column {column} {what}: it cannot have an index. Nothing was changed. {remedy}",
        error_class="DELTA_OPERATION_NOT_SUPPORTED",
        sql_state="0A000",
        column=column,
    )


def _domain_of(snapshot: Snapshot, name: str) -> DomainMetadata:
    """The domain of an index; the case of the name does not matter. Raises UnsupportedOperationError (INDEX_NOT_FOUND)."""
    domains = {domain.lower(): indexed for domain, indexed in snapshot.domain_metadata().items() if domain.startswith(PREFIX)}
    domain = domains.get(f"{PREFIX}{name}".lower())
    if domain is None:
        index_names = ", ".join(sorted(indexed.domain.removeprefix(PREFIX) for indexed in domains.values())) or "none"
        raise UnsupportedOperationError(
            f"The table at {snapshot.table_root} has no index {name}. Nothing was changed. Its indexes: {index_names}.",
            error_class="INDEX_NOT_FOUND",
            sql_state="42704",
            index=name,
        )
    return domain


def _unknown_format_error(snapshot: Snapshot, name: str, reason: str) -> UnsupportedOperationError:
    """The error for an index that this version does not understand."""
    return UnsupportedOperationError(
        f"The index {name} of the table at {snapshot.table_root} cannot be refreshed: {reason}. Nothing was changed. Drop it and "
        "create it again.",
        error_class="DELTA_OPERATION_NOT_SUPPORTED",
        sql_state="0A000",
        index=name,
    )


def _for_current_column(snapshot: Snapshot, definition: IndexDefinition) -> IndexDefinition:
    """The index for the column's current type. If the type has another kind of values than the index, it has no segments, because
    the old ones are useless. An index whose column is gone is returned unchanged. Raises UnsupportedOperationError if the
    column's type cannot have an index any more."""
    path = find_indexed_column(snapshot.config, definition)
    if path is None or is_usable(snapshot.config, definition):
        return definition
    kind = value_kind(find_path(snapshot.schema, path))
    if kind is None:
        raise _unindexable_error(".".join(path), "has another type than when it was indexed", "Drop the index.")
    return IndexDefinition(definition.name, definition.column, kind)


def _with_new_segments(newest: Snapshot, *, built: BuiltIndex, planned: IndexDefinition) -> IndexDefinition | None:
    """The index to commit after the newest version: its index with the new segments. None if another writer has dropped or
    changed it so that the new segments do not fit. built: the new segments. planned: the index for which they were written."""
    current = next(
        (candidate for candidate in definitions_of(newest.domain_metadata())[0] if candidate.name == planned.name), None
    )
    if current is None or not is_usable(newest.config, built.definition):
        return None
    if current == planned:
        return built.definition
    return built.add_to(current)


def _index_row(snapshot: Snapshot, definition: IndexDefinition, table_files: pa.Table) -> dict[str, object]:
    """The row of INDEXES_SCHEMA for an index. table_files: all files of the version."""
    files = [opened_segment.files for _, opened_segment in open_segments(snapshot, definition) if opened_segment is not None]
    covered_count = pc.sum(covered_mask(pa.concat_tables([FILES_SCHEMA.empty_table(), *files]), table_files)).as_py() or 0
    path = find_indexed_column(snapshot.config, definition) or definition.column
    return {
        "name": definition.name,
        "column": ".".join(path),
        "files": covered_count,
        "uncovered": table_files.num_rows - covered_count,
        "segments": len(definition.segments),
        "rows": sum(segment.rows for segment in definition.segments),
        "bytes": sum(segment.bytes for segment in definition.segments),
        "usable": is_usable(snapshot.config, definition),
    }
