"""Point lookups: the table's indexes tell which of the files that remain after pruning by statistics may hold a value.

    lookup = IndexLookup.of(snapshot, predicate)          # None if no index applies to the predicate
    mask = lookup.find_possible_matches(files)                            # files: with path and size

A lookup uses conjuncts that compare an indexed column itself with constants of its kind: `=`, `<=>`, IN. A file is kept if it is
a candidate (a segment has one of the hashes for it), or if no segment covers it: it is newer than the index, or has another size.
Deletion vectors do not matter: a segment describes all rows of a file. An index that cannot be used causes one warning, and reads
continue without it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import SchemaMismatchError
from delta_py.expressions.tree import Column, Comparison, Expression, In, Literal, conjuncts
from delta_py.index.definition import IndexDefinition, Segment, definitions_of
from delta_py.index.hashing import Hashes, hashes, kind_of_type, value_kind
from delta_py.index.segments import FILES_SCHEMA, OpenSegment, UnusableSegmentError, open_segment
from delta_py.protocol.column_mapping import physical_path
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.arrow_values import all_true
from delta_py.types.schema import Path, find_path, to_arrow_type

_log = logging.getLogger("delta_py")

_MOST_VALUES = 1000  # constants in an IN list; the index is not used for a longer list
# An index is not used for older instants. In files that were written with the legacy calendar, their stored values depend on the
# session's time zone, by less than a day.
_FIRST_FIXED_INSTANT = datetime(1900, 1, 2, tzinfo=UTC)
_THREADS = 8
_MOST_WARNINGS = 1000  # so that the memory for warnings is limited
_warned: set[tuple[str, str]] = set()


@dataclass(frozen=True, slots=True)
class _LookupValues:
    """Constants that a predicate compares a column with: rows match only if the column has one of these values. column: the
    column's physical path. kind: the kind of its values. hashes: the hashes of the constants, sorted and distinct."""

    column: Path
    kind: str
    hashes: Hashes


@dataclass(frozen=True, slots=True)
class IndexLookup:
    """The indexes that apply to a predicate. lookups: pairs of an index and the hashes of the constants that the predicate
    compares its column with. A file can match only if its column has one of these hashes."""

    store: ObjectStore
    lookups: tuple[tuple[IndexDefinition, Hashes], ...]

    @classmethod
    def of(cls, snapshot: Snapshot, predicate: Expression | None) -> IndexLookup | None:
        """The lookup for a predicate; None if no index applies. The metadata domains of the log are read only if the predicate
        compares a column with constants. Raises only the errors of reading the log."""
        if predicate is None or not snapshot.config.feature("domainMetadata"):
            return None
        lookup_values = list(_lookup_values(snapshot.config, predicate))
        if not lookup_values:
            return None
        definitions, unknown = definitions_of(snapshot.domain_metadata())
        for name, reason in unknown.items():
            warn_once(snapshot.table_root, f"index {name}", f"{reason}; it is not used")
        lookups = [
            (definition, values.hashes)
            for definition in definitions
            for values in lookup_values
            if (definition.column, definition.kind) == (values.column, values.kind) and definition.segments
        ]
        return cls(snapshot.store, tuple(lookups)) if lookups else None

    def find_possible_matches(self, files: pa.Table) -> pa.ChunkedArray | pa.Array:
        """True for each file that may hold rows for which the predicate is true."""
        mask = all_true(files.num_rows)
        if files.num_rows < 2:  # reading one file is as fast as a lookup
            return mask
        for definition, value_hashes in self.lookups:
            mask = pc.and_(mask, self._keep_by_index(definition, value_hashes, files))
        return mask

    def _keep_by_index(self, definition: IndexDefinition, value_hashes: Hashes, files: pa.Table) -> pa.Array:
        """Which files may have one of the values: candidates of a segment, and all files that no segment covers."""
        with ThreadPoolExecutor(min(_THREADS, len(definition.segments)), "delta_py-index") as pool:
            results = list(
                pool.map(lambda segment: self._segment_candidates(definition, segment, value_hashes), definition.segments)
            )
        answers = [answer for answer in results if answer is not None]
        covered_files = pa.concat_tables([FILES_SCHEMA.empty_table(), *(opened_segment.files for opened_segment, _ in answers)])
        is_candidate = np.concatenate([np.zeros(0, bool), *(candidates for _, candidates in answers)])
        return keep_mask(files, covered_files, pa.array(is_candidate))

    def _segment_candidates(
        self, definition: IndexDefinition, segment: Segment, value_hashes: Hashes
    ) -> tuple[OpenSegment, np.ndarray] | None:
        """The segment, and for each of its files whether it is a candidate; None for a segment that cannot be used."""
        try:
            opened_segment = open_segment(self.store, definition, segment)
            candidates = np.zeros(segment.files, bool)
            candidates[opened_segment.find_candidates(value_hashes)] = True
            return opened_segment, candidates
        except UnusableSegmentError as error:
            warn_once(self.store.root, f"index {definition.name}", f"{error}; reads do without it. Refresh the index")
            return None


def keep_mask(files: pa.Table, covered_files: pa.Table, is_candidate: pa.Array) -> pa.Array:
    """True for each file that must be read: it is not covered by the index, or it is a candidate. files: with path and size.
    covered_files: the files that the index covers (FILES_SCHEMA). is_candidate: for each covered file, whether it may hold the
    rows.
    """
    positions, is_covered = covered_positions(files, covered_files)
    return pc.if_else(is_covered, pc.fill_null(is_candidate.take(positions), True), True)


def covered_positions(files: pa.Table, covered_files: pa.Table) -> tuple[pa.Array, pa.Array]:
    """The position of each file among the covered ones (FILES_SCHEMA), null if absent; and whether it is covered with the same
    size.
    """
    positions = pc.index_in(files["path"], covered_files["path"].combine_chunks()).combine_chunks()
    sizes = covered_files["size"].combine_chunks().take(positions)
    return positions, pc.fill_null(pc.equal(sizes, files["size"].combine_chunks()), False)


def warn_once(root: str, what: str, reason: str) -> None:
    """Log once per process that an index of a table is not used."""
    if len(_warned) < _MOST_WARNINGS and (root, what) not in _warned:
        _warned.add((root, what))
        _log.warning("%s: %s: %s.", root, what, reason)


# ---------------------------------------------------------------- the values in a predicate


def _lookup_values(config: TableConfig, predicate: Expression) -> Iterator[_LookupValues]:
    """For each part of the predicate that compares a column with constants for equality: the column, and the hashes of the
    constants."""
    for conjunct in conjuncts(predicate):
        match conjunct:
            case Comparison("=" | "<=>", Column(path), Literal() as literal) | Comparison(
                "=" | "<=>", Literal() as literal, Column(path)
            ):
                values = _hashed_values(config, path, [literal], matches_null=conjunct.op == "<=>")
            case In(Column(path), options) if len(options) <= _MOST_VALUES:
                values = _hashed_values(config, path, options, matches_null=False)
            case _:
                continue
        if values is not None:
            yield values


def _hashed_values(config: TableConfig, path: Path, literals: Sequence[Literal], *, matches_null: bool) -> _LookupValues | None:
    """The hashes of the constants that a column is compared with. None if equal values may have other hashes, so that an index
    would lose rows. matches_null: a null constant matches nulls (`<=>`), which no index has; else it matches nothing."""
    try:
        path_fields = find_path(config.schema, path)
        kind = value_kind(path_fields)
        values = [literal for literal in literals if literal.value is not None]
        if kind is None or (matches_null and len(values) < len(literals)):
            return None
        if any(kind_of_type(literal.data_type) != kind for literal in values):
            return None
        if kind == "timestamp" and any(literal.value < _FIRST_FIXED_INSTANT for literal in values):
            return None
        arrays = [pa.array([literal.value], to_arrow_type(literal.data_type)) for literal in values]
        value_hashes = np.concatenate([np.zeros(0, np.uint64), *(hashes(array, kind) for array in arrays)])
        return _LookupValues(physical_path(config.schema, path, config.column_mapping_mode), kind, np.unique(value_hashes))
    except (SchemaMismatchError, pa.ArrowException, ValueError, OverflowError, TypeError):
        return None  # an unknown column, or a constant that is no value of its type: other code reports that
