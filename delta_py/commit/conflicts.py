"""Decide whether a prepared commit may follow commits that other writers made first.

    later = rebase(ours, winners)                  # the commit for the next free version, or a conflict
    rows = merged_rows(later, file, ...)           # for each of later.shared: the files from which both commits deleted rows

Nothing is read or written here.

What conflicts, for a winner's commit and ours:

    winner did                          conflicts when
    anything                            ours names its own version (next_version_only)
    change the protocol, create         always
    change the metadata                 always, unless it only raises identity columns' marks and ours changes none
    record a transaction id             ours read or records the same application id
    set a metadata domain               ours sets it too (row tracking's is merged), or replaces every file of the table
    add files                           ours read rows that one of them may hold, and the isolation level forbids that; or ours
                                        replaces every file of the table
    remove files                        ours read or removes one of them, or read all rows
    change a file's deletion vector     as if it removed the file. If only the rows that ours deletes from it matter to ours:
                                        only when the winner deleted one of these rows, or restored rows

Isolation: Serializable counts all added files. So does every level if our commit changes the metadata, because rows that were
added under the old metadata may not fit the new one. Otherwise WriteSerializable ignores the files of blind appends, and
SnapshotIsolation ignores all added files. A file may hold a row unless its partition values, its statistics or finally its rows
exclude it (added_rows.py).
Protocol: Row Tracking; In-Commit Timestamps; Domain Metadata; Transaction Identifiers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from functools import reduce

from pyroaring import BitMap64

from delta_py.commit.prepared import (
    NEW_TABLE,
    ROW_TRACKING_DOMAIN,
    IsolationLevel,
    PreparedCommit,
    SharedFile,
    WinningCommit,
    row_id_high_water_mark,
)
from delta_py.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)


def rebase(ours: PreparedCommit, winners: Sequence[WinningCommit]) -> PreparedCommit:
    """Return our commit for the version after the winners', with everything that depends on the commits before it.

    winners: the commits from ours.version on, in order, at least one, none of them ours. If the result has shared files, their
    rows decide: call merged_rows for each, then PreparedCommit.with_vectors.
    Raises the conflict of the first winner that has one, a DeltaConcurrentModificationException. Then nothing is
    committed.
    """
    assert winners and winners[0].version == ours.version
    shared = _shared_files(ours, winners)
    seen_paths = ours.reads.paths | {remove.path for remove in ours.removes}
    # Files that winners have added since we read the table: their removal by a later winner is no conflict. A file that our
    # commit has seen is not one of them, even if a winner adds it again, with another deletion vector.
    added_paths: set[str] = set()
    for winner in winners:
        _check_table(ours, winner)
        _check_ids_and_domains(ours, winner)
        _check_removed(ours, winner, shared.keys() | added_paths)
        _check_added(ours, winner, shared.keys())
        added_paths.update(add.path for add in winner.adds if add.path not in seen_paths)
    row_id_domains = [winner.domains[ROW_TRACKING_DOMAIN] for winner in winners if ROW_TRACKING_DOMAIN in winner.domains]
    marks = [row_id_high_water_mark(domain) for domain in row_id_domains]
    times = [winner.timestamp_ms for winner in winners if winner.timestamp_ms is not None]
    return replace(
        ours,
        version=winners[-1].version + 1,
        previous_timestamp_ms=times[-1] if times else ours.previous_timestamp_ms,
        checksum=reduce(lambda checksum, winner: winner.advance_checksum(checksum), winners, ours.checksum),
        row_id_high_water_mark=marks[-1] if marks and ours.row_id_high_water_mark is not None else ours.row_id_high_water_mark,
        shared=tuple(shared.values()),
        followed_metadata=next(
            (winner.metadata for winner in reversed(winners) if winner.metadata is not None), ours.followed_metadata
        ),
    )


def _check_table(ours: PreparedCommit, winner: WinningCommit) -> None:
    """Raise the conflict with a winner that changed the table's definition, or that came before a commit which must be the
    next.
    """
    if ours.next_version_only and ours.read_version != NEW_TABLE:  # a new table has a better message, below
        raise _conflict_error(ConcurrentWriteException, ours, winner, "took the version that this one names")
    if ours.read_version == NEW_TABLE:
        raise _conflict_error(
            ProtocolChangedException,
            ours,
            winner,
            "created the table that this one was to create",
            "Append to it, or choose another path.",
        )
    if winner.protocol is not None:
        raise _conflict_error(ProtocolChangedException, ours, winner, "changed the table's protocol")
    # A change of identity columns' marks alone does not concern a commit that leaves the metadata unchanged.
    if winner.metadata is not None and not (winner.only_identity and ours.metadata is None):
        raise _conflict_error(MetadataChangedException, ours, winner, "changed the table's metadata")


def _check_ids_and_domains(ours: PreparedCommit, winner: WinningCommit) -> None:
    """Raise the conflict with a winner that set the same metadata domain, or recorded a transaction of an application whose
    transactions our commit reads or records. If our commit replaces all files, most domains that a winner set are conflicts
    too."""
    shared = winner.app_ids & (ours.reads.app_ids | {transaction.app_id for transaction in ours.transactions})
    if shared:
        what = f"recorded a transaction of the application {sorted(shared)[0]}, as this one does"
        raise _conflict_error(
            ConcurrentTransactionException,
            ours,
            winner,
            what,
            "Make sure that only one stream or job at a time writes under that id.",
        )
    # Row tracking's domain is among ours.domains only if our commit requests a mark; PreparedCommit.actions adds it otherwise.
    domains = {domain.domain for domain in ours.domains} & winner.domains.keys()
    what = "as this one does"
    if ours.reads.all_files and not domains:
        domains = winner.domains.keys() - {ROW_TRACKING_DOMAIN}
        what = "which may describe files that this one replaces"
    if domains:
        raise _conflict_error(
            ConcurrentWriteException,
            ours,
            winner,
            f"set the metadata domain {sorted(domains)[0]}, {what}",
            error_class="DELTA_CONCURRENT_DOMAIN_METADATA",
        )


def _check_removed(ours: PreparedCommit, winner: WinningCommit, exempt_paths: Set[str]) -> None:
    """Raise the conflict with a winner that removed a file which our commit read, removes or changes.

    exempt_paths: paths that are no conflict here: of the files whose rows are compared later, and of the files that were added
    after we read the table.
    """
    removes = [remove for remove in winner.removes if remove.path not in exempt_paths]
    removed_paths = {remove.path for remove in removes}
    paths_removed_by_both = removed_paths & {remove.path for remove in ours.removes}
    if paths_removed_by_both:
        raise _conflict_error(
            ConcurrentDeleteDeleteException,
            ours,
            winner,
            f"removed {_files_text(paths_removed_by_both)}, which this one removes or changes too",
        )
    paths_removed_but_read = removed_paths & ours.reads.paths
    if ours.reads.all_rows:  # then each file whose rows were deleted was read
        paths_removed_but_read |= {remove.path for remove in removes if remove.data_change}
    if paths_removed_but_read:
        raise _conflict_error(
            ConcurrentDeleteReadException, ours, winner, f"removed {_files_text(paths_removed_but_read)}, which this one has read"
        )


def _check_added(ours: PreparedCommit, winner: WinningCommit, shared: Set[str]) -> None:
    """Raise the conflict with a winner that added files which may hold rows that our commit had to read.

    Files that were only rearranged hold no new rows; _check_removed handles the files that they replace. Shared files hold no new
    rows either; their rows are compared later. But if our commit replaces every file, any added file is a conflict.
    shared: paths of the shared files.
    """
    if ours.reads.all_files and winner.adds:
        what = f"added {_files_text({add.path for add in winner.adds})}, and this one must rewrite every file of the table"
        raise _conflict_error(ConcurrentAppendException, ours, winner, what)
    level = IsolationLevel.SERIALIZABLE if ours.metadata is not None else ours.isolation
    if ours.reads.may_match is None or level is IsolationLevel.SNAPSHOT_ISOLATION:
        return
    if winner.is_blind_append and level is IsolationLevel.WRITE_SERIALIZABLE:
        return
    adds = [add for add in winner.adds if add.data_change and add.path not in shared]
    matching_adds = [add for add, matches in zip(adds, ours.reads.may_match(adds), strict=True) if matches]
    if not matching_adds:
        return
    sufficient_level = IsolationLevel.WRITE_SERIALIZABLE if winner.is_blind_append else IsolationLevel.SNAPSHOT_ISOLATION
    remedy = f"Isolation level {sufficient_level.value} would have let it pass ({ours.isolation.value} is in force)."
    if ours.metadata is not None:
        remedy = "As it changes the table's metadata too, no isolation level lets it pass."
    values = ", ".join(f"{name}={value}" for name, value in matching_adds[0].partition_values.items())
    where = f" to partition [{values}]" if values else ""
    raise _conflict_error(
        ConcurrentAppendException,
        ours,
        winner,
        f"added {_files_text({add.path for add in matching_adds})}{where}, which may hold rows that "
        f"this one had to read: {' or '.join(ours.reads.row_descriptions)}",
        f"Run the operation again. {remedy}",
    )


def _files_text(paths: Iterable[str]) -> str:
    """The files for a message: the first by name, and the number of others."""
    first, *more_paths = sorted(paths)
    return f"{first} and {len(more_paths)} more files" if more_paths else f"the file {first}"


def _conflict_error(
    kind: type[DeltaConcurrentModificationException],
    ours: PreparedCommit,
    winner: WinningCommit,
    what: str,
    remedy: str = "Run the operation again.",
    error_class: str | None = None,
) -> DeltaConcurrentModificationException:
    """The conflict of our commit with a winner. what: what the winner did, as in `added the file ...`. error_class: None for that
    of `kind`."""
    operation = ours.commit_info.get("operation", "this operation")
    return kind(
        f"Transaction conflict detected: another writer's commit {winner.version} ({winner.operation}) {what}. "
        f"Nothing of this operation ({operation}, which read version {ours.read_version}) was committed. {remedy}",
        error_class=error_class,
        version=winner.version,
        operation=winner.operation,
        isolation_level=ours.isolation.value,
        predicates=ours.reads.row_descriptions,
    )


# ---------------------------------------------------------------- files from which both commits deleted rows


def _shared_files(ours: PreparedCommit, winners: Sequence[WinningCommit]) -> dict[str, SharedFile]:
    """The files, by path, that our commit only reads or gives another deletion vector, and that are still in the table with a
    vector of another commit.

    A winner changes a vector by removing the file with its current vector, and adding it with the new one.
    Protocol: Action Reconciliation; Deletion Vectors.
    """
    if not ours.reads.only_deleted_rows:
        return {}
    our_removes = {remove.path: remove for remove in ours.removes}
    our_adds = {add.path: add for add in ours.adds if add.deletion_vector is not None}
    relevant_paths = ours.reads.paths | our_removes.keys()  # the files that our commit reads or changes
    shared: dict[str, SharedFile] = {}
    removed_paths: set[str] = set()
    for winner in winners:
        adds = {add.path: add for add in winner.adds}
        for remove in (remove for remove in winner.removes if remove.path in relevant_paths):
            # theirs: the file as the winner leaves it; None if it is gone. shared_file: what earlier winners did to the file;
            # None if they did nothing to it.
            path, theirs, shared_file = remove.path, adds.get(remove.path), shared.get(remove.path)
            # The file before this winner: as an earlier winner left it, or as we remove it. If we only read the file, our commit
            # does not know its vector, and the winner's remove names it.
            live_file = shared_file.theirs if shared_file is not None else our_removes.get(path, remove)
            # keeps_file: the winner replaces the file's current vector, and not another one, by a new vector. A key is the path
            # and the vector.
            new_key = theirs.key if theirs is not None and theirs.deletion_vector is not None else None
            keeps_file = new_key is not None and remove.key == live_file.key != new_key
            we_remove_file = path in our_removes and path not in our_adds
            if theirs is None or not keeps_file or we_remove_file:
                removed_paths.add(path)
            else:
                vector_before = remove.deletion_vector if shared_file is None else shared_file.before
                shared[path] = SharedFile(before=vector_before, theirs=theirs, ours=our_adds.get(path), winner=winner)
    return {path: file for path, file in shared.items() if path not in removed_paths}


def merged_rows(commit: PreparedCommit, file: SharedFile, before: BitMap64, theirs: BitMap64, ours: BitMap64 | None) -> BitMap64:
    """The deleted rows of the file after our commit. before, theirs, ours: the rows of these vectors of the file.

    Raises the conflict, as rebase does, if both commits deleted the same row, or if the winner restored rows.
    """
    if not before <= theirs:
        what = f"gave back {len(before - theirs)} rows of the file {file.path}, which this one has read"
        raise shared_conflict_error(commit, file, what)
    newly_deleted = BitMap64() if ours is None else ours - before
    deleted_by_both = newly_deleted & theirs
    if deleted_by_both:
        what = f"took {len(deleted_by_both)} rows out of the file {file.path} that this one deletes or changes too"
        raise shared_conflict_error(commit, file, what)
    return theirs | newly_deleted


def shared_conflict_error(commit: PreparedCommit, file: SharedFile, what: str) -> DeltaConcurrentModificationException:
    """The conflict over a shared file. what: what the winner did, as in `took 2 rows out of ...`."""
    kind = ConcurrentDeleteReadException if file.ours is None else ConcurrentDeleteDeleteException
    return _conflict_error(kind, commit, file.winner, what)
