"""The sections Log and Removed files: the log's health, and what VACUUM would delete."""

from __future__ import annotations

from collections.abc import Callable

from delta_py.report.facts import LogFacts, RetentionFacts, Unknown
from delta_py.report.html.markup import Child, Markup, data, joined, shortened, tag
from delta_py.report.html.parts import fact_table, known_text, list_table, number, source_line, unknown
from delta_py.report.words import count_text, length_text, moment_text
from delta_py.types.sizes import bytes_text

_MOST_FAULTS = 25
_CHECKSUMS = {"agrees": "agrees with the log", "contradicts": "contradicts the log", "older form": "older form, not compared"}


def log_body(facts: LogFacts) -> Markup:
    """The faults of the log, and facts about its state with their sources."""
    listing_source = "a listing of _delta_log"
    checkpoint: Child = "none"
    if facts.newest_checkpoint is not None:
        size = bytes_text(facts.newest_checkpoint_bytes or 0)
        kind = (facts.newest_checkpoint_kind or "").removeprefix("CHECKPOINT_").replace("_", " ").lower()
        checkpoint = f"of version {facts.newest_checkpoint:,}, {kind}, {size}"
    hinted_version = facts.last_checkpoint
    checksum = known_text(facts.checksum, lambda state: _CHECKSUMS.get(state, state))
    if facts.checksum_detail is not None:
        checksum = joined([checksum, ": ", shortened(facts.checksum_detail, 600)])
    incomplete = f", and {facts.incomplete_checkpoints:,} incomplete" if facts.incomplete_checkpoints else ""
    hint_text = _optional_text(hinted_version, "none", lambda version: f"version {version:,}")
    to_load = f"{count_text(facts.files_to_load, 'file')}, {bytes_text(facts.bytes_to_load)}"
    interval = known_text(facts.checkpoint_interval, lambda count: count_text(count, "commit"))
    gaps = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in facts.gaps[:10])
    rows: list[tuple[str, Child, str]] = [
        ("Newest version", number(facts.newest_version), listing_source),
        ("Oldest version that can be read", known_text(facts.earliest_version, lambda version: f"{version:,}"), listing_source),
        ("Commits", f"{facts.commits:,} ({bytes_text(facts.commit_bytes)})", listing_source),
        ("Missing commits", shortened(gaps, 300) or "none between the oldest and the newest", listing_source),
        ("Checkpoints", f"{facts.checkpoints:,}{incomplete}", listing_source),
        ("Newest checkpoint, up to this version", checkpoint, listing_source),
        ("Commits after this checkpoint", number(facts.commits_since_checkpoint), "the files that are read to load the version"),
        ("A checkpoint is due every", interval, "delta.checkpointInterval, by default 10"),
        ("Checkpoint that _last_checkpoint names", hint_text, "_delta_log/_last_checkpoint"),
        ("Log compactions", f"{facts.compactions:,} ({facts.compactions_in_use:,} in use)", listing_source),
        ("Version checksums", number(facts.checksums), listing_source),
        ("Checksum of this version", checksum, "the .crc file next to the commit, compared with the log"),
        ("Files read to load this version", to_load, "the files that are read to load the version"),
    ]
    return joined([_faults(facts), fact_table("State of the log.", rows), source_line(facts.source)])


def _optional_text(value: int | Unknown | None, missing: str, text: Callable[[int], str]) -> Child:
    """A fact that may not exist. missing: the text for None."""
    if isinstance(value, Unknown):
        return unknown(value)
    return missing if value is None else text(value)


def _faults(facts: LogFacts) -> Markup:
    if isinstance(facts.faults, Unknown):
        return tag("p", "Faults: ", unknown(facts.faults))
    if not facts.faults:
        return tag("p", "FSCK finds no fault in the log. Data files were not checked.")
    return list_table(
        f"FSCK finds {count_text(len(facts.faults), 'fault')} in the log.",
        ("Kind", "Version", "File", "Fault", "Can be repaired"),
        [
            (
                fault.kind,
                "" if fault.version is None else f"{fault.version:,}",
                data(fault.path),
                tag("bdi", shortened(fault.reason, 400)),
                "yes" if fault.can_repair else "no",
            )
            for fault in facts.faults[:_MOST_FAULTS]
        ],
        numbers=(1,),
    )


def retention_body(facts: RetentionFacts) -> Markup:
    """Facts about removed files with their sources, and a table of what VACUUM would delete, if that is known."""
    remove_source, properties = "remove actions of the version", "table properties"
    last_vacuum_ms = facts.last_vacuum_ms
    last_vacuum_version = facts.last_vacuum_version
    expired: Child = known_text(facts.expired, lambda count: f"{count:,}")
    if not isinstance(facts.expired_bytes, Unknown):
        expired = joined([expired, f" ({bytes_text(facts.expired_bytes)})"])
    elif not isinstance(facts.expired, Unknown):  # if both are unknown, one reason is enough
        expired = joined([expired, " (", unknown(facts.expired_bytes), ")"])
    without_time: Child = known_text(facts.without_time, lambda count: f"{count:,}")
    rows: list[tuple[str, Child, str]] = [
        (
            "Removed files are retained for",
            known_text(facts.deleted_file_ms, length_text),
            f"{properties}: delta.deletedFileRetentionDuration, by default a week",
        ),
        (
            "Commits are retained for",
            known_text(facts.log_ms, length_text),
            f"{properties}: delta.logRetentionDuration, by default 30 days",
        ),
        ("Removed files in the log", known_text(facts.tombstones, lambda count: f"{count:,}"), remove_source),
        ("Total size of removed files", known_text(facts.tombstone_bytes, bytes_text), f"{remove_source}: size"),
        ("Removed files whose retention has ended", expired, f"{remove_source}: deletionTimestamp; some may be deleted already"),
        ("Removed files without a time", without_time, f"{remove_source}: deletionTimestamp"),
        (
            "Newest VACUUM",
            _optional_text(last_vacuum_ms, "none", moment_text),
            "VACUUM END in the commits",
        ),
        (
            "VACUUM covered commits up to",
            _optional_text(last_vacuum_version, "not recorded", lambda version: f"version {version:,}"),
            "_delta_log/_last_vacuum_info",
        ),
        (
            "VACUUM would delete",
            known_text(facts.vacuum, lambda debt: f"{count_text(debt.files, 'file')} ({bytes_text(debt.bytes)})"),
            "a dry run of VACUUM, which lists the table's directories",
        ),
    ]
    table: Child = None
    if not isinstance(facts.vacuum, Unknown) and facts.vacuum.reasons:
        table = list_table(
            "Files that VACUUM would delete.",
            ("Reason", "Files", "Total size"),
            [(reason.reason, number(reason.files), bytes_text(reason.bytes)) for reason in facts.vacuum.reasons],
            numbers=(1, 2),
        )
    return joined([fact_table("Removed files and retention.", rows), table, source_line(facts.source)])
