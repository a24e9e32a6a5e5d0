"""Column pruning, filters and limits for Spark's scan of a Python data source.

Spark's own API passes neither the columns nor, safely, the filters of a query to a Python source: its filter push-down reuses
the filters of the first query on a DataFrame for later queries, which gives wrong rows. So `install(spark)` adds one
optimizer rule, written in Java (spark_plugin/java/rule), to the session. The rule puts every scan of the source back into Spark's
own push-down, plans each scan separately, and leaves all filters in Spark's plan. If anything is unfamiliar, the rule does not
change the plan.

The source reads the rule's request from the schema that Spark passes to `reader(schema)`:

    def reader(self, schema):
        request = ScanRequest.parse(schema)
        request.columns             # only the columns, and nested fields, that the query needs; may be empty
        request.predicate           # Expression over logical paths that skips files, row groups and rows; or None
        ...
        return limited(my_reader, request.limit)    # stops when the query needs no more rows

A frame that `with_metadata_column(frame)` returns has the hidden column `_metadata` next to those of the table. Only queries
that name it request it; `request.wants_metadata_column` is then true.

`request.is_pruned` says whether the rule made the request. Without the rule the schema is complete and there is no predicate:
Spark's stock push-down never reaches the source, whatever the session's settings, because the reader must not define
`pushFilters` at all. The source need not apply the predicate exactly: it may return rows for which the predicate is not true, but
it must not leave out any others. The limit is exact, because Spark does not count again: so every reader goes through `limited`.
A limit never comes with a predicate.

If a query only counts rows, or takes smallest and largest values, `request.log_question` describes an answer that can replace the
rows. If a query only aggregates values of the rows, `request.partial` describes partial rows that can replace them: the schema
is then that of partial rows, and rows for which `request.exact_predicate()` is not true must be left out.

The first partition of `partitions()` may be a `MessagePartition` whose messages are `plan_message(message, request.scan_id)`.
messages.json describes the message. Each part is optional:
- `kept`: `explain()`, the driver's log and `status(spark).last_scan` show how many files and bytes are read. This does not apply
  to a scan without columns: it has no predicate either, and reads all files.
- `joins`: Spark gets the size of the scan when it plans joins. Files are chosen once more by the values that the other side of a
  join has in a partition column: Spark calls `reader(schema)` again with one more predicate (`request.is_planned_again`), and the
  read function of the first call gets the partitions of the second.
- `answer`: the log's answer; the rule puts it into the plan, and nothing is read. A source that does not know the answer
  continues as if there were no question.
- `road`, `partial`: the rows are partial rows. If a source does not return partial rows, the rule requests the rows once more.
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
        rows_needed_by,
        status,
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
    "rows_needed_by",
    "status",
    "with_columns_of_batches",
    "with_metadata_column",
]

_OF_THE_DRIVER = ("PruningStatus", "install", "status", "rows_needed_by", "with_columns_of_batches", "with_metadata_column")


def __getattr__(name: str) -> Any:
    """Each task imports this package, but no task has a session to install the rule into."""
    if name in _OF_THE_DRIVER:
        from spark_plugin.pruning import rule

        return getattr(rule, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
