"""Decide whether files that other writers added hold rows that our commit has read. Partition values and statistics decide first.
If they do not, the rows themselves decide.

    read_rows = ReadRows.of(store, config, predicate, timezone)
    read_rows.may_match(adds)                # [True, False, ...]

Files are read only if there would be a conflict otherwise, and only if they are few and small.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from delta_py.commit.prepared import num_records
from delta_py.errors import DeltaError
from delta_py.expressions.clock import is_deterministic
from delta_py.expressions.tree import Expression, columns_of, conjunction, conjuncts
from delta_py.parquet.file_reader import read_files
from delta_py.protocol.actions import AddFile
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_pruner import FilePruner, has_path
from delta_py.scan.planning import ScanOptions, make_state
from delta_py.scan.scan_state import ScanFile, ScanState
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import StructType

_log = logging.getLogger("delta_py")
# If the doubtful files exceed one of these limits, their rows are not read, and each of them counts as a match.
_MOST_FILES, _MOST_BYTES = 64, 64 << 20
_MOST_ROWS = 4_000_000  # needed in addition to _MOST_BYTES, because repeated values take almost no bytes


@dataclass(frozen=True, slots=True)
class ReadRows:
    """The rows that a commit has read: those for which a predicate is true. Tells which new files may hold such a row.

    pruner: decides by partition values and statistics. state: a scan that returns exactly the rows for which the predicate is
    true, to read the files that the pruner cannot exclude; None if reading rows would not exclude more files.
    """

    pruner: FilePruner
    state: ScanState | None = None
    # Files that were already read, by path and deletion vector, and whether they hold such a row.
    _answers: dict[tuple[str, DeletionVectorDescriptor | None], bool] = field(default_factory=dict)

    @classmethod
    def of(cls, store: ObjectStore, config: TableConfig, predicate: Expression | None, timezone: str) -> ReadRows:
        """The rows of a table for which the predicate is true; None for all rows. timezone: in which partition values of
        timestamps are read. Parts of the predicate that depend on more than the row, such as the current time, count as true."""
        pruner = FilePruner.of(config, predicate, timezone)
        if predicate is None:
            return cls(pruner)
        decidable_parts = tuple(
            part
            for part in conjuncts(predicate)
            if is_deterministic(part) and all(has_path(config.schema, path) for path in columns_of(part))
        )
        if not decidable_parts:
            return cls(pruner)
        options = ScanOptions(drop_rows=True, timezone=timezone)
        state = make_state(config, store, StructType(()), conjunction(decidable_parts), options)
        # make_state turns drop_rows off if partition values alone decide the predicate. Then reading rows decides nothing more.
        return cls(pruner, state if state.drop_rows else None)

    def may_match(self, adds: Sequence[AddFile]) -> list[bool]:
        """For each added file, whether it may hold a row for which the predicate is true."""
        answers = self.pruner.may_match(adds)
        undecided_adds = [add for add, may_match in zip(adds, answers, strict=True) if may_match]
        if self.state is None or _is_too_much_to_read(undecided_adds):
            return answers
        return [may_match and self._has_matching_row(add) for add, may_match in zip(adds, answers, strict=True)]

    def _has_matching_row(self, add: AddFile) -> bool:
        """Whether the file has a matching row. Each file is read once, although a commit may be checked many times."""
        key = (add.path, add.deletion_vector)
        if key not in self._answers:
            self._answers[key] = self._reads_matching_row(add)
        return self._answers[key]

    def _reads_matching_row(self, add: AddFile) -> bool:
        """Read the file until a matching row is found, and return whether there is one; True if the file cannot be read."""
        assert self.state is not None
        file = ScanFile(
            add.path, add.size_bytes, add.modification_time_ms, add.partition_values, deletion_vector=add.deletion_vector
        )
        try:
            return any(batch.num_rows for batch in read_files(self.state, [file]))
        except (DeltaError, OSError) as error:
            root = self.state.store.root
            _log.warning("%s: whether the new file %s has rows that were read is unknown: %s", root, add.path, error)
            return True


def _is_too_much_to_read(adds: Sequence[AddFile]) -> bool:
    """Whether reading these files costs more than a conflict. A file without a stated row count may have any number of rows."""
    row_counts = [num_records(add) for add in adds]
    known_counts = [count for count in row_counts if count is not None]
    return (
        len(adds) > _MOST_FILES
        or sum(add.size_bytes for add in adds) > _MOST_BYTES
        or len(known_counts) < len(row_counts)
        or sum(known_counts) > _MOST_ROWS
    )
