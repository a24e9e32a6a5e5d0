"""Column pruning, filters and limits for Spark's scan of a Python data source.

Spark's own API hands a Python source neither the columns nor, safely, the filters of a query: its filter push-down keeps
the filters of the first query on a DataFrame for the later ones, which gives wrong rows. So `install(spark)` adds one
optimizer rule to the session, which is Java (spark_plugin/java/rule). The rule puts every scan of the source back into Spark's
own push-down, plans each scan by itself, and leaves all filters in Spark's plan. When anything looks unfamiliar it leaves the
plan as it was.

What the source does with it (all of it is in the schema that Spark passes to `reader(schema)`):

    def reader(self, schema):
        columns = strip_marker(schema)          # only the columns, and nested fields, that the query needs; may be empty
        predicate = pushed_predicate(schema)    # Expression over logical paths to skip files, row groups and rows by; or None
        ...
        return limited(my_reader, schema)       # stops where the query wants no more rows

A frame that `with_metadata_column(frame)` gives back has the column `_metadata` beside those of the table, hidden: only queries
that name it ask for it, and `wants_metadata_column(schema)` says that one does.

`is_pruned(schema)` says whether the rule asked. Without it the schema is the whole one and there is no predicate: Spark's
stock push-down never reaches the source, whatever the session's conf, because the reader must not define `pushFilters`
at all. The predicate need not be applied exactly: rows that it is not true for may be left in, never others left out. The
limit is exact, Spark does not count again: that is why every reader goes through `limited`. It never comes with a predicate.

Where a query only counts rows, or takes smallest and largest values, `log_question(schema)` says what would do instead of
rows. A source that knows it exactly returns a reader whose first partition carries `answer_text(table, schema)` in a str
attribute; the rule then puts the answer into the plan, and nothing is read. One that does not goes on as if it had not been
asked.

Where a query only adds up what is in the rows, `partial_rows(schema)` says what partial rows would do in their place: the schema
is that of partial rows then, and rows for which `exact_predicate(schema)` is not true must be left out. A source that gives them
says so by `partial_text(schema)`; one that does not is asked for the rows once more.

The first partition of `partitions()` may carry `explain_text(report, schema)` in any str attribute; then `explain()`, the
driver's log and `status(spark).last_scan` say how many files and bytes were kept. Not so of a scan without columns: it has no
predicate either, and keeps all files.

It may carry `facts_text(facts, schema)` in the same attribute; then Spark is told the size of the scan when it plans joins, and
files are chosen once more by what the other side of a join has found in a partition column: `reader(schema)` is called again
with a predicate more (`is_planned_again(schema)`), and the read function of the first call gets the partitions of the second.
"""

from typing import TYPE_CHECKING, Any

from spark_plugin.pruning.handover import (
    NativeWish,
    answer_text,
    asked_of_batch,
    columns_of_partial_rows,
    exact_predicate,
    explain_text,
    facts_text,
    few_text,
    files_text,
    is_only_question,
    is_planned_again,
    is_pruned,
    log_question,
    native_text,
    native_wish,
    partial_rows,
    partial_text,
    predicate_of,
    pushed_limit,
    pushed_predicate,
    question_of,
    strip_marker,
    wants_metadata_column,
    wants_statistics,
)
from spark_plugin.pruning.limited import limited

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
    "NativeWish",
    "PruningStatus",
    "answer_text",
    "asked_of_batch",
    "columns_of_partial_rows",
    "exact_predicate",
    "explain_text",
    "facts_text",
    "few_text",
    "files_text",
    "install",
    "is_only_question",
    "is_planned_again",
    "is_pruned",
    "limited",
    "log_question",
    "native_text",
    "native_wish",
    "partial_rows",
    "partial_text",
    "predicate_of",
    "pushed_limit",
    "pushed_predicate",
    "question_of",
    "status",
    "strip_marker",
    "wanted_rows",
    "wants_metadata_column",
    "wants_statistics",
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
