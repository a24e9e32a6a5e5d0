"""Indexes after commits: the process that commits covers new files when there are enough of them.

    index_new_files(store, transaction.config, version, written)

This is a separate commit, after the one that added the files, so that two writers never conflict over an index. It runs when 16
files are not covered, and reads at most 1 GiB of them; TableIndexes.refresh covers all. Failures are logged, not raised.

Most commits read nothing for it: each process remembers how many files of a table are not covered, and adds its own. It counts
again at every tenth version, and for a table that it does not know yet.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.commit.post_commit import logging_failures
from delta_py.commit.table_cache import READ_EVERY_VERSIONS, CountPerTable, table_key
from delta_py.index.definition import PREFIX, IndexDefinition, definitions_of
from delta_py.index.segments import FILES_SCHEMA
from delta_py.index_commands.index import TableIndexes
from delta_py.index_commands.index_build import BuildLimits, covered_mask, files_without_vectors, is_usable, open_segments
from delta_py.log.checksum import read_checksum_of
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import WrittenFiles

_DUE_FILES = 16  # from this number of files that an index does not cover, it is refreshed
# A commit waits for this work, so it is limited: 1 GiB of data files, and merges only of many small segments.
_LIMITS = BuildLimits(most_bytes=1 << 30, small_rows=256 << 10, merge_count=8)

# The greatest number of files that an index of the table does not cover; None for a table without an index.
_uncovered = CountPerTable()


def index_new_files(store: ObjectStore, config: TableConfig, version: int, written: WrittenFiles) -> None:
    """Let the table's indexes cover new files, if enough of them are not covered. Called after the commit of `version`, which
    added `written`. config: the table at that version. Raises nothing, unless PYDELTA_POST_COMMIT_ERRORS is set.
    """
    if not written.adds or not config.feature("domainMetadata"):
        return
    with logging_failures(store, version, "new files were not indexed"):
        key = table_key(store, config)
        if not _may_be_due(key, version, len(written.adds)):
            return
        checksum = read_checksum_of(store, version)
        domains = None if checksum is None else checksum.domain_metadata
        # The version checksum shows without reading the log that the table has no index.
        if domains is not None and not any(domain.domain.startswith(PREFIX) for domain in domains):
            _uncovered.put(key, None)
            return
        snapshot = Snapshot.load(store)
        definitions = [index for index in definitions_of(snapshot.domain_metadata())[0] if is_usable(snapshot.config, index)]
        counts = _uncovered_counts(snapshot, definitions)
        _uncovered.put(key, max(counts, default=None))
        for definition, count in zip(definitions, counts, strict=True):
            if count >= _DUE_FILES:
                TableIndexes(store).cover(definition.name, _LIMITS)
                _uncovered.put(key, 0)


def index_clone(store: ObjectStore, config: TableConfig, version: int) -> None:
    """Let the indexes of a new deep clone cover its files, and read at most 1 GiB of them. Called after the commit of `version`,
    which made the clone. config: the table at that version. Raises as index_new_files.
    """
    if not config.feature("domainMetadata"):
        return
    with logging_failures(store, version, "its files were not indexed"):
        for definition in definitions_of(Snapshot.load(store).domain_metadata())[0]:
            if is_usable(config, definition):
                TableIndexes(store).cover(definition.name, _LIMITS)


def _may_be_due(key: str, version: int, added: int) -> bool:
    """Whether some index may not cover _DUE_FILES files or more, so that it is worth reading the log. True if this process has no
    count for the table, and at every version that is a multiple of READ_EVERY_VERSIONS, because other processes add files
    too. key: the table's, from table_key. added: the number of new files, which is added to the count."""
    if key not in _uncovered or version % READ_EVERY_VERSIONS == 0:
        return True
    count = _uncovered.add(key, added)
    return count is not None and count >= _DUE_FILES


def _uncovered_counts(snapshot: Snapshot, definitions: list[IndexDefinition]) -> list[int]:
    """The number of files that each index does not cover."""
    table_files = files_without_vectors(snapshot) if definitions else None
    counts: list[int] = []
    for definition in definitions:
        assert table_files is not None
        files = [opened.files for _, opened in open_segments(snapshot, definition) if opened is not None]
        is_covered = covered_mask(pa.concat_tables([FILES_SCHEMA.empty_table(), *files]), table_files)
        counts.append(table_files.num_rows - (pc.sum(is_covered).as_py() or 0))
    return counts
