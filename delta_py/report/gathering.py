"""Gathers all facts of a table. Each part is separate, so that an unknown part does not affect the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pyarrow as pa

from delta_py.errors import readable
from delta_py.layout.skipping_report import bounded_batches
from delta_py.log.commit_reader import FILE_SCHEMA
from delta_py.protocol.clustering import clustering_columns
from delta_py.protocol.paths import LOG_DIRECTORY, commit_file_name
from delta_py.report.advice import advice
from delta_py.report.commit_facts import MOST_COMMITS, commit_facts
from delta_py.report.facts import CommitFacts, Identity, StreamFacts, TableFacts, Unknown, known
from delta_py.report.file_facts import file_facts, partition_facts, vector_facts
from delta_py.report.log_facts import log_facts, retention_facts
from delta_py.report.skipping_facts import columns_to_look_at, skipping_facts
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats import FileStats, concat_stats
from delta_py.types.schema import Path

T = TypeVar("T")
_FILE_COLUMNS = ("path", "partition_values", "size", "deletion_vector")


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """vacuum: run VACUUM as a dry run, which lists the table's directories. check_log: look for faults in the
    log, which reads every checkpoint. commits: how many of the newest commits are read. filtered: how many queries compared
    each column, in addition to those of this process. now_ms: None for the clock's time."""

    vacuum: bool = False
    check_log: bool = True
    commits: int = MOST_COMMITS
    filtered: Mapping[Path, int] = field(default_factory=dict)
    now_ms: int | None = None


def gather(snapshot: Snapshot, request: ReportRequest | None = None) -> TableFacts:
    """All facts of a table, and the advice that follows from them. Facts that cannot be read are Unknown with the reason. Memory:
    the live files' names, sizes, partition values and the bounds of some columns, at most skipping_facts.MOST_COLUMNS."""
    request = request or ReportRequest()
    now_ms = time.time_ns() // 1_000_000 if request.now_ms is None else request.now_ms
    commits_and_streams = known(lambda: commit_facts(snapshot, request.commits))
    commits: CommitFacts | Unknown
    streams: StreamFacts | Unknown
    commits, streams = (
        (commits_and_streams, commits_and_streams) if isinstance(commits_and_streams, Unknown) else commits_and_streams
    )
    z_order = () if isinstance(commits, Unknown) else commits.z_order
    paths = columns_to_look_at(snapshot, z_order, request.filtered)
    live_files = known(lambda: _read_live_files(snapshot, paths))
    live_paths = None if isinstance(live_files, Unknown) else live_files[0]["path"]

    def facts_of_files(gather_part: Callable[[pa.Table, FileStats], T]) -> T | Unknown:
        """A part about the live files, which are read once for all such parts. Unknown if they could not be read."""
        return live_files if isinstance(live_files, Unknown) else known(lambda: gather_part(*live_files))

    facts = TableFacts(
        generated_ms=now_ms,
        identity=_identity(snapshot),
        commits=commits,
        files=facts_of_files(lambda files, stats: file_facts(snapshot, files, stats.num_records)),
        partitions=facts_of_files(lambda files, _: partition_facts(snapshot, files))
        if snapshot.config.partition_columns
        else None,
        vectors=facts_of_files(lambda files, stats: vector_facts(snapshot, files, stats.num_records)),
        skipping=facts_of_files(lambda _, stats: skipping_facts(snapshot, paths, stats, z_order, request.filtered)),
        log=known(lambda: log_facts(snapshot, check=request.check_log)),
        retention=known(lambda: retention_facts(snapshot, live_paths, commits, now_ms, vacuum=request.vacuum)),
        streams=streams,
    )
    return replace(facts, advice=advice(facts, snapshot.store.root))


def _read_live_files(snapshot: Snapshot, paths: list[Path]) -> tuple[pa.Table, FileStats]:
    """The live files, and their statistics in the same order. paths: the columns whose bounds are read."""
    batches = list(bounded_batches(snapshot, paths))
    schema = pa.schema([FILE_SCHEMA.field(name) for name in _FILE_COLUMNS])
    table = pa.Table.from_batches([batch.files.select(list(_FILE_COLUMNS)) for batch in batches], schema)
    return table, concat_stats([batch.stats for batch in batches if batch.stats is not None])


def _identity(snapshot: Snapshot) -> Identity:
    protocol, metadata = snapshot.protocol, snapshot.metadata
    checkpoint = snapshot.segment.checkpoint
    # The part of the log that the protocol and the metadata come from; a version checksum contains both.
    log_source = f"the commits 0 to {snapshot.version}"
    if checkpoint is not None:
        log_source = f"the checkpoint of version {checkpoint.version}"
        if snapshot.segment.commits:
            log_source += f" and the commits {checkpoint.version + 1} to {snapshot.version}"
    if snapshot.checksum is not None:
        log_source = f"the version checksum {snapshot.checksum.path}"
    timestamp = known(lambda: snapshot.timestamp_ms)
    return Identity(
        root=readable(snapshot.table_root),
        name=metadata.name,
        description=metadata.description,
        table_id=metadata.id,
        version=snapshot.version,
        timestamp_ms=timestamp,
        created_ms=metadata.created_time_ms,
        min_reader=protocol.min_reader_version,
        min_writer=protocol.min_writer_version,
        features=tuple(sorted((protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset()))),
        columns=len(snapshot.schema.fields),
        partition_columns=tuple(snapshot.config.partition_columns),
        clustering_columns=known(lambda: clustering_columns(snapshot.schema, snapshot.clustering_domain())),
        properties=dict(metadata.configuration),
        source=f"metaData and protocol actions of {log_source}; time of {LOG_DIRECTORY}/{commit_file_name(snapshot.version)}",
    )
