"""Options of a stream: where it begins, and what it reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from delta_py.expressions.tree import Expression
from delta_py.scan.planning import ScanOptions
from delta_py.streaming.commits import ChangeRules
from delta_py.types.schema import StructType


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream reads. exclude: as in FileChoice. fail_on_data_loss: False continues after missing commits. change_feed: read
    the changes of rows, not the added rows. has_start: the user set where a new stream begins. event_time: the column whose times
    order the rows that exist at the start; None orders them by the age of their files. columns, predicate, scan: as in
    plan_scan."""

    rules: ChangeRules = field(default_factory=ChangeRules)
    exclude: str | None = None
    fail_on_data_loss: bool = True
    change_feed: bool = False
    has_start: bool = False
    event_time: str | None = None
    columns: StructType | None = None
    predicate: Expression | None = None
    scan: ScanOptions = field(default_factory=ScanOptions)


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a new stream begins; at most one of these is set. None of them: with the table's current rows.

    version: with the rows that this version added. timestamp_ms: with the first version at or after it. latest: with the next
    version."""

    version: int | None = None
    timestamp_ms: int | None = None
    latest: bool = False
