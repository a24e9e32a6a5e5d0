"""Column pruning, filters and limits for Spark's scan of a Python data source.

Spark's own API hands a Python source neither the columns nor, safely, the filters of a query: its filter push-down keeps
the filters of the first query on a DataFrame for the later ones, which gives wrong rows. So `install(spark)` adds one
optimizer rule to the session, which is Java (spark_plugin/java/rule). The rule puts every scan of the source back into Spark's
own push-down, plans each scan by itself, and leaves all filters in Spark's plan. When anything looks unfamiliar it leaves the
plan as it was.

What the source does with it (all of it is in the schema that Spark passes to `reader(schema)`):

    def reader(self, schema):
        request = ScanRequest.parse(schema)
        request.columns             # only the columns, and nested fields, that the query needs; may be empty
        request.predicate           # Expression over logical paths to skip files, row groups and rows by; or None
        ...
        return limited(my_reader, request.limit)    # stops where the query wants no more rows

A frame that `with_metadata_column(frame)` gives back has the column `_metadata` next to those of the table, hidden: only queries
that name it ask for it, and `request.wants_metadata_column` says that one does.

`request.is_pruned` says whether the rule asked. Without it the schema is the whole one and there is no predicate: Spark's
stock push-down never reaches the source, whatever the session's conf, because the reader must not define `pushFilters`
at all. The predicate need not be applied exactly: rows that it is not true for may be left in, never others left out. The
limit is exact, Spark does not count again: that is why every reader goes through `limited`. It never comes with a predicate.

Where a query only counts rows, or takes smallest and largest values, `request.log_question` says what would do instead of
rows. Where a query only adds up what is in the rows, `request.partial` says what partial rows would do in their place: the schema
is that of partial rows then, and rows for which `request.exact_predicate()` is not true must be left out.

The first partition of `partitions()` may be a `MessagePartition` whose messages are `plan_message(message, request.scan_id)`.
messages.json describes the message, of which every part may be absent:
- `kept`: `explain()`, the driver's log and `status(spark).last_scan` say how many files and bytes are read. Not so of a scan
  without columns: it has no predicate either, and reads all files.
- `joins`: Spark is told the size of the scan when it plans joins, and files are chosen once more by what the other side of a join
  has found in a partition column: `reader(schema)` is called again with a predicate more (`request.is_planned_again`), and the
  read function of the first call gets the partitions of the second.
- `answer`: the log's answer; the rule puts it into the plan, and nothing is read. A source that does not know it goes on as if it
  had not been asked.
- `road`, `partial`: the rows are partial rows. A source that does not give them is asked for the rows once more.
"""

from typing import TYPE_CHECKING, Any

from spark_plugin.pruning.limited import limited
from spark_plugin.pruning.partition_messages import ANSWER, MessagePartition, kept_part, plan_message
from spark_plugin.pruning.predicate_json import predicate_of
from spark_plugin.pruning.scan_request import NativeWish, ScanRequest, parse_batch_start
from spark_plugin.pruning.stream_question import question_of

if TYPE_CHECKING:
    from spark_plugin.pruning.rule import (
        PruningStatus,
        install,
        status,
        wanted_rows,
        with_columns_of_batches,
        with_metadata_column,
    )

__all__ = [
    "ANSWER",
    "MessagePartition",
    "NativeWish",
    "PruningStatus",
    "ScanRequest",
    "install",
    "kept_part",
    "limited",
    "parse_batch_start",
    "plan_message",
    "predicate_of",
    "question_of",
    "status",
    "wanted_rows",
    "with_columns_of_batches",
    "with_metadata_column",
]

_OF_THE_DRIVER = ("PruningStatus", "install", "status", "wanted_rows", "with_columns_of_batches", "with_metadata_column")


def __getattr__(name: str) -> Any:
    """Each task imports this package, and none has a session to install the rule into."""
    if name in _OF_THE_DRIVER:
        from spark_plugin.pruning import rule

        return getattr(rule, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
