"""The parameters and metrics of a commit in one line, for people."""

from __future__ import annotations

from collections.abc import Mapping

# In the order in which they are shown. The other metrics are in the JSON of `history`.
_METRICS = {
    "numOutputRows": "row",
    "numTargetRowsInserted": "inserted row",
    "numTargetRowsUpdated": "updated row",
    "numTargetRowsDeleted": "deleted row",
    "numDeletedRows": "deleted row",
    "numUpdatedRows": "updated row",
    "numFiles": "file",
    "numAddedFiles": "added file",
    "numRemovedFiles": "removed file",
    "numRestoredFiles": "restored file",
    "numDeletedFiles": "deleted file",
    "numOutputBytes": None,
}
_MERGE_TOTAL, _MERGE_PARTS = "numOutputRows", ("numTargetRowsInserted", "numTargetRowsUpdated")
_OF_NEW_TABLES = ("partitionBy", "clusterBy")  # each append repeats them
_EMPTY = frozenset({None, "", "[]", "{}", "null", "false"})


def commit_details(parameters: Mapping[str, str | None], metrics: Mapping[str, str | None]) -> str | None:
    """`mode=Append: 120 rows, 3 files, 1.5 KiB`. None if there is nothing to say."""
    left_out = _OF_NEW_TABLES if parameters.get("mode") == "Append" else ()
    shown = {name: value for name, value in parameters.items() if value not in _EMPTY and name not in left_out}
    texts = [
        ", ".join(f"{name}={value}" for name, value in shown.items()),
        ", ".join(_metric_texts(metrics)),
    ]
    return ": ".join(text for text in texts if text) or None


def _metric_texts(metrics: Mapping[str, str | None]) -> list[str]:
    from delta_py.report.words import count_text
    from delta_py.types.sizes import bytes_text

    counts = {name: int(text) for name, text in metrics.items() if text is not None and text.isascii() and text.isdigit()}
    if any(name in counts for name in _MERGE_PARTS):  # a MERGE's rows include those that it only copied
        counts.pop(_MERGE_TOTAL, None)
    shown = [(noun, counts[name]) for name, noun in _METRICS.items() if counts.get(name)]
    return [bytes_text(count) if noun is None else count_text(count, noun) for noun, count in shown]
