"""Advice about a table, in words, with the commands to type. Names from a table that could mislead a person who reads or types a
command (control characters, marks that change the direction of text) are never part of a command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence

from delta_py.errors import readable
from delta_py.report.facts import Advice, ColumnSkipping, Commands, TableFacts, Unknown
from delta_py.report.words import count_text, percent_text
from delta_py.types.names import quoted
from delta_py.types.sizes import bytes_text
from delta_py.visible_text import is_visible

# The number of files from which fewer files would make a difference, and from which a Z-order would.
_MANY_FILES, _SKIPPABLE_FILES = 4, 4
# The number of partitions from which small ones are worth advice, and the median size in bytes below which they are small.
_MANY_PARTITIONS, _SMALL_PARTITION_BYTES = 50, 16 << 20
_LARGE_DELETED_SHARE = 0.2  # of rows: from here on the advice is to rewrite files
_MOST_COLUMNS = 3  # of an order that is advised
_LONGEST_COMMAND = 1_000  # in characters


def advice(facts: TableFacts, root: str) -> tuple[Advice, ...]:
    """The most urgent first. root: of the table, as a command takes it."""
    commands = _Commands(root)
    parts = (
        _damage_advice,
        _small_files_advice,
        _deleted_rows_advice,
        _skipping_advice,
        _checkpoint_advice,
        _removed_files_advice,
        _partitions_advice,
    )
    return tuple(item for part in parts for item in part(facts, commands))


class _Commands:
    """The three forms of a command. Each method returns None if no safe text can be shown. `_root`: None if the table's root
    cannot be shown unchanged."""

    def __init__(self, root: str) -> None:
        self._root = root if _is_plain(root) and readable(root) == root else None

    def cli(self, command: str, *arguments: str) -> str | None:
        """A command of pydelta for a shell. arguments: after the root; some come from the table, so all are checked."""
        return self._safe_text(lambda root: shlex.join(["pydelta", command, root, *arguments]), *arguments)

    def sql(self, statement: str, *names: str) -> str | None:
        """A statement of SQL. statement: with {} as a placeholder for the table. names: those in it that come from the table."""
        return self._safe_text(lambda root: statement.replace("{}", f"pydelta.{quoted(root)}", 1), *names)

    def python(self, call: str, *names: str) -> str | None:
        """A call of Python. call: of a method of DeltaTable. names: those in it that come from the table."""
        return self._safe_text(lambda root: f"DeltaTable({root!r}).{call}", *names)

    def _safe_text(self, command: Callable[[str], str], *names: str) -> str | None:
        """The command; None if the table's root or one of the names cannot be shown unchanged, or the command is very long."""
        if self._root is None or not all(map(_is_plain, names)):
            return None
        text = command(self._root)
        return text if len(text) <= _LONGEST_COMMAND else None


def _is_plain(text: str) -> bool:
    """Whether a text has no character that is invisible, or could mislead the person who types it."""
    return text.isprintable() and is_visible(text)


def _damage_advice(facts: TableFacts, commands: _Commands) -> Iterator[Advice]:
    log = facts.log
    if isinstance(log, Unknown):
        return
    faults = () if isinstance(log.faults, Unknown) else log.faults
    is_checksum_wrong = log.checksum in ("damaged", "contradicts")
    if not faults and not is_checksum_wrong:
        return
    if faults:
        repairable_count = sum(fault.can_repair for fault in faults)
        title = f"The log has {count_text(len(faults), 'fault')}"
        first_fault = faults[0]
        fault_text = first_fault.reason if first_fault.path in first_fault.reason else f"{first_fault.path}: {first_fault.reason}"
        reason = f"{fault_text.removesuffix('.')}. A repair can fix {repairable_count} of {len(faults)}."
    else:
        title = "The version checksum is damaged" if log.checksum == "damaged" else "The version checksum contradicts the log"
        reason = log.checksum_detail or ""
    yield Advice(
        title,
        reason,
        log.source,
        commands.cli("fsck"),
        commands.sql("FSCK REPAIR TABLE {} DRY RUN"),
        commands.python("fsck()"),
        urgent=True,
        after_dry_run=Commands(
            commands.cli("fsck", "--repair"), commands.sql("FSCK REPAIR TABLE {}"), commands.python("fsck(dry_run=False)")
        ),
    )


def _small_files_advice(facts: TableFacts, commands: _Commands) -> Iterator[Advice]:
    files, clustering = facts.files, facts.identity.clustering_columns
    if isinstance(files, Unknown) or isinstance(files.optimize, Unknown):
        return
    optimize = files.optimize
    if optimize.files < _MANY_FILES or optimize.files <= optimize.bins:  # no fewer files than now
        return
    title = f"OPTIMIZE can merge {count_text(optimize.files, 'file')} into {optimize.bins:,}"
    if clustering and not isinstance(clustering, Unknown):
        title = f"OPTIMIZE can cluster {count_text(optimize.files, 'file')}"
    yield Advice(
        title,
        f"It would rewrite {bytes_text(optimize.bytes)}. Each file adds some time to every query that reads it.",
        f"{files.source}; the plan of OPTIMIZE",
        commands.cli("optimize"),
        commands.sql("OPTIMIZE {}"),
        commands.python("optimize.compact()" if not clustering else "optimize.cluster()"),
    )


def _deleted_rows_advice(facts: TableFacts, commands: _Commands) -> Iterator[Advice]:
    vectors = facts.vectors
    if isinstance(vectors, Unknown) or isinstance(vectors.rows, Unknown) or not vectors.rows:
        return
    share = vectors.deleted_rows / vectors.rows
    if share < _LARGE_DELETED_SHARE:
        return
    yield Advice(
        f"{percent_text(share)} of the rows in {count_text(vectors.files, 'file')} are deleted",
        f"Queries read {vectors.deleted_rows:,} deleted rows and drop them, until the files are rewritten.",
        vectors.source,
        None,
        commands.sql("REORG TABLE {} APPLY (PURGE)"),
        commands.python("reorg.purge()"),
    )


def _skipping_advice(facts: TableFacts, commands: _Commands) -> Iterator[Advice]:
    skipping, files = facts.skipping, facts.files
    if isinstance(skipping, Unknown) or isinstance(files, Unknown) or files.count < _SKIPPABLE_FILES:
        return
    columns_with_advice = [column for column in skipping.columns if column.advice is not None]
    without_bounds = [column for column in columns_with_advice if column.with_bounds < column.files / 2]
    queried_columns = [column for column in columns_with_advice if column.queries and column not in without_bounds]
    unselective_columns = [
        column for column in columns_with_advice if column not in without_bounds and column not in queried_columns
    ]
    clustering = facts.identity.clustering_columns
    is_clustered = not isinstance(clustering, Unknown) and bool(clustering)
    if queried_columns:
        pronoun = "it" if len(queried_columns) == 1 else "them"
        reason = f"because queries of this process filter by {pronoun}"
        yield _order_advice(queried_columns, skipping.source, commands, is_clustered, reason)
    # Without knowledge of queries, an order is only advised if no column lets queries skip files well.
    elif unselective_columns and len(unselective_columns) == sum(column.point_share is not None for column in skipping.columns):
        yield _order_advice(unselective_columns[:1], skipping.source, commands, is_clustered, "if queries filter by it")
    if len(without_bounds) == len(skipping.columns) and without_bounds:
        yield Advice(
            "Most files have no minima and maxima",
            "Queries cannot skip files without statistics. Writers collect statistics of the first 32 columns, or of those that "
            "delta.dataSkippingStatsColumns names. Files that OPTIMIZE rewrites get statistics.",
            skipping.source,
            commands.cli("optimize"),
            commands.sql("OPTIMIZE {}"),
            commands.python("optimize.compact()" if not is_clustered else "optimize.cluster()"),
        )


def _order_advice(columns: Sequence[ColumnSkipping], source: str, commands: _Commands, is_clustered: bool, reason: str) -> Advice:
    """The advice to order rows by the columns that queries use most: by other clustering columns, or else by a Z-order."""
    columns = sorted(columns, key=lambda column: -column.queries)[:_MOST_COLUMNS]
    names = [column.sql_name for column in columns]
    shares = [f"{percent_text(column.point_share or 0)} for a value of {column.column}" for column in columns]
    name_list = ", ".join(names)
    if is_clustered:
        cli, sql = None, commands.sql(f"ALTER TABLE {{}} CLUSTER BY ({name_list})", *names)
        python = commands.python(f"cluster_by({names!r})", *names)
    else:
        cli, sql = commands.cli("zorder", "--by", ",".join(names)), commands.sql(f"OPTIMIZE {{}} ZORDER BY ({name_list})", *names)
        python = commands.python(f"optimize.z_order({names!r})", *names)
    return Advice(
        f"Put rows in the order of {', '.join(column.column for column in columns)}, {reason}",
        f"Share of the files that a query reads now: {'; '.join(shares)}.",
        source,
        cli,
        sql,
        python,
    )


def _checkpoint_advice(facts: TableFacts, commands: _Commands) -> Iterator[Advice]:
    log = facts.log
    if isinstance(log, Unknown) or isinstance(log.checkpoint_interval, Unknown):
        return
    if log.commits_since_checkpoint <= 2 * log.checkpoint_interval:  # not late enough for advice
        return
    since = "no checkpoint" if log.newest_checkpoint is None else f"the newest checkpoint is of version {log.newest_checkpoint}"
    yield Advice(
        f"Loading the table reads {count_text(log.commits_since_checkpoint, 'commit')}",
        f"There is {since}, though delta.checkpointInterval is {log.checkpoint_interval}."
        if log.newest_checkpoint is None
        else f"{since.capitalize()}, though delta.checkpointInterval is {log.checkpoint_interval}.",
        log.source,
        commands.cli("checkpoint"),
        None,
        commands.python("checkpoint()"),
    )


def _removed_files_advice(facts: TableFacts, commands: _Commands) -> Iterator[Advice]:
    retention = facts.retention
    if isinstance(retention, Unknown):
        return
    vacuum = retention.vacuum
    if isinstance(vacuum, Unknown):
        if isinstance(retention.expired, Unknown):
            return
        file_count, expired_bytes = retention.expired, retention.expired_bytes
        size_note = (
            "Their size is not in the log" if isinstance(expired_bytes, Unknown) else f"They have {bytes_text(expired_bytes)}"
        )
        reason = f"{size_note}. No retained version references them. Some may be deleted already."
    else:
        file_count = vacuum.files
        reason = f"They have {bytes_text(vacuum.bytes)}. Afterwards, versions older than the retention time cannot be read."
    if file_count:
        yield Advice(
            f"VACUUM may delete {count_text(file_count, 'file')}",
            reason,
            retention.source,
            commands.cli("vacuum"),
            commands.sql("VACUUM {} DRY RUN"),
            commands.python("vacuum()"),
            after_dry_run=Commands(
                commands.cli("vacuum", "--delete"), commands.sql("VACUUM {}"), commands.python("vacuum(dry_run=False)")
            ),
        )


def _partitions_advice(facts: TableFacts, commands: _Commands) -> Iterator[Advice]:
    partitions = facts.partitions
    if partitions is None or isinstance(partitions, Unknown) or partitions.median_bytes is None:
        return
    if partitions.count < _MANY_PARTITIONS or partitions.median_bytes >= _SMALL_PARTITION_BYTES:
        return
    columns = ", ".join(partitions.columns)
    yield Advice(
        f"{count_text(partitions.count, 'partition')} are small",
        f"Half of them have less than {bytes_text(partitions.median_bytes)}. OPTIMIZE merges files only within a partition. To "
        f"have fewer partition columns than {columns}, or clustering instead, rewrite the table.",
        partitions.source,
        commands.cli("optimize"),
        commands.sql("OPTIMIZE {}"),
        commands.python("optimize.compact()"),
    )
