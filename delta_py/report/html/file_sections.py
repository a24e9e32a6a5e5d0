"""The sections Files, Partitions and Deleted rows: the live files of the version."""

from __future__ import annotations

from collections.abc import Sequence

from delta_py.report.facts import FileFacts, Partition, PartitionFacts, SizeBin, Unknown, VectorFacts
from delta_py.report.html.charts import Bar, columns, lying_bars
from delta_py.report.html.markup import Child, Markup, data, joined, shortened, tag
from delta_py.report.html.parts import bytes_or_unknown, fact_table, folded, known_text, list_table, number, source_line, unknown
from delta_py.report.words import count_text, percent_text
from delta_py.types.sizes import bytes_text

_BARS = 12


def files_body(facts: FileFacts) -> Markup:
    """A histogram of the files by size, the same as a table, and facts with their sources."""
    size_source, row_source = "size of the add actions", "stats.numRecords of the add actions, minus deletionVector.cardinality"
    target_text = known_text(facts.target_bytes, bytes_text)
    optimize = facts.optimize
    optimize_text: Child = unknown(optimize) if isinstance(optimize, Unknown) else "nothing"
    if not isinstance(optimize, Unknown) and optimize.files:
        optimize_text = (
            f"{count_text(optimize.files, 'file')} ({bytes_text(optimize.bytes)}) as {count_text(optimize.bins, 'file')}"
        )
    rows: list[tuple[str, Child, str]] = [
        ("Files", number(facts.count), "add actions of the version"),
        ("Size", bytes_text(facts.bytes), size_source),
        ("Rows", known_text(facts.rows, lambda rows: f"{rows:,}"), row_source),
    ]
    if not facts.count:
        no_files = tag("p", "The version has no files.")
        return joined([no_files, fact_table("Files of the version.", rows), source_line(facts.source)])
    target_note = "" if isinstance(facts.target_bytes, Unknown) else f". OPTIMIZE aims at {bytes_text(facts.target_bytes)}."
    picture = columns(
        f"Histogram of {count_text(facts.count, 'file')} by size. The table below has the same data.",
        [size.files for size in facts.sizes],
        _edge_texts(facts.sizes),
        [f"{size.files:,}" for size in facts.sizes],
        f"File size{target_note}",
        "Number of files",
    )
    small_text = known_text(facts.small_count, lambda count: f"{count:,} ({percent_text(count / facts.count)} of the files)")
    small_bytes_text = known_text(facts.small_bytes, bytes_text)
    rows += [
        ("Median file size", bytes_or_unknown(facts.median_bytes), size_source),
        ("Largest file size", bytes_or_unknown(facts.largest_bytes), size_source),
        ("Target file size", target_text, "delta.targetFileSize, by default 1 GiB"),
        ("Files below the target size", small_text, size_source),
        ("Total size of these files", small_bytes_text, size_source),
        ("OPTIMIZE would rewrite", optimize_text, "the plan of OPTIMIZE: sizes, tags, deletion vectors"),
    ]
    table = list_table(
        "Files by size.",
        ("File size", "Files", "Total size"),
        [(_bin_text(size), number(size.files), bytes_text(size.bytes)) for size in facts.sizes],
        numbers=(1, 2),
    )
    folded_table = folded("The histogram as a table", table)
    return joined([picture, folded_table, fact_table("Files of the version.", rows), source_line(facts.source)])


def _edge_texts(sizes: Sequence[SizeBin]) -> list[str]:
    """The sizes at the edges of the histogram's columns, as texts. The last column has no right edge if its bin has no upper
    limit."""
    last = sizes[-1].high_bytes
    return [*(_size_text(size.low_bytes) for size in sizes), *([] if last is None else [bytes_text(last)])]


def _size_text(size: int) -> str:
    return bytes_text(size) if size else "0"


def _bin_text(size: SizeBin) -> str:
    if size.high_bytes is None:
        return f"{bytes_text(size.low_bytes)} or more"
    return f"{_size_text(size.low_bytes)} to {bytes_text(size.high_bytes)}"


# ---------------------------------------------------------------- partitions


def partitions_body(facts: PartitionFacts) -> Markup:
    """The sizes of the largest partitions and of all partitions as pictures, facts with their sources, and a table."""
    names = ", ".join(facts.columns)
    values_source = "partitionValues and size of the add actions"
    if not facts.count:
        return joined([tag("p", "Partitioned by ", data(names), ". The version has no files."), source_line(facts.source)])
    rows: list[tuple[str, Child, str]] = [
        ("Partitioned by", data(names), "metaData.partitionColumns"),
        ("Partitions", number(facts.count), values_source),
        ("Median partition size", bytes_or_unknown(facts.median_bytes), values_source),
        ("Median number of files per partition", f"{facts.median_files or 0:,.3g}", values_source),
        (
            "Largest partition size divided by the median",
            number(None) if facts.skew is None else f"{facts.skew:,.3g}",
            values_source,
        ),
        (
            "Partitions whose files could be merged into one",
            known_text(facts.small_count, lambda count: f"{count:,}"),
            f"{values_source}; delta.targetFileSize, by default 1 GiB",
        ),
    ]
    table = list_table(
        f"The {_largest_count(facts)}.",
        (*map(str, (shortened(name, 60) for name in facts.columns)), "Files", "Total size"),
        [
            (
                *(tag("span", "null", class_="unknown") if value is None else data(value) for value in partition.values),
                number(partition.files),
                bytes_text(partition.bytes),
            )
            for partition in facts.largest
        ],
        numbers=(len(facts.columns), len(facts.columns) + 1),
    )
    folded_table = folded(f"The {_largest_count(facts)} as a table", table)
    pictures = [_largest_partitions(facts), _partition_profile(facts) if facts.count > _BARS else None]
    return joined([pictures, fact_table("Partitions of the version.", rows), folded_table, source_line(facts.source)])


def _largest_count(facts: PartitionFacts) -> str:
    """`20 largest partitions`; `partition` if there is only one."""
    return f"{len(facts.largest)} largest partitions" if len(facts.largest) > 1 else "partition"


def _largest_partitions(facts: PartitionFacts) -> Markup:
    largest = facts.largest[:_BARS]
    shown_partitions = count_text(len(largest), "partition")
    if facts.count > len(largest):
        shown_partitions = f"the {len(largest)} largest of {count_text(facts.count, 'partition')}"
    max_bytes = float(max(largest[0].bytes, 1))
    return lying_bars(
        f"Sizes of {shown_partitions}. The table below has the same data.",
        [Bar(_partition_name(partition), partition.bytes, bytes_text(partition.bytes)) for partition in largest],
        f"Size of {shown_partitions}, by {shortened(', '.join(facts.columns), 120)}",
        [(0.0, "0"), (max_bytes, bytes_text(max_bytes))],
        max_bytes,
    )


def _partition_name(partition: Partition) -> str:
    return ", ".join("null" if value is None else value for value in partition.values)


def _partition_profile(facts: PartitionFacts) -> Markup:
    """The sizes of all partitions as columns. If there are more partitions than columns, a column is the mean of a group."""
    partitions_per_column = facts.count / len(facts.profile)
    return columns(
        f"Sizes of {count_text(facts.count, 'partition')}, from the largest to the smallest. The table below has the numbers.",
        facts.profile,
        [],
        [],
        f"All {count_text(facts.count, 'partition')}, from the largest to the smallest"
        + (
            f". Each column is the mean of about {round(partitions_per_column):,} partitions."
            if partitions_per_column > 1
            else ""
        ),
        f"Size (highest column: {bytes_text(max(facts.profile))})",
    )


# ---------------------------------------------------------------- deleted rows


def vectors_body(facts: VectorFacts) -> Markup:
    """The files with deletion vectors by their share of deleted rows, and facts with their sources."""
    if not facts.files:
        return joined([tag("p", "No file has a deletion vector, so readers drop no rows."), source_line(facts.source)])
    # A bar counts the files from the end of the bar before it to its own end.
    low_shares = [0.0, *(share for share, _ in facts.shares[:-1])]
    names = [f"{percent_text(low)} to {percent_text(high)}" for low, (high, _) in zip(low_shares, facts.shares, strict=True)]
    max_count = max(count for _, count in facts.shares) or 1
    picture = lying_bars(
        "Files with deletion vectors, by the share of their rows that is deleted. The numbers are next to the bars.",
        [
            Bar(name, count, f"{count:,}", is_quiet=high <= facts.max_share)
            for name, (high, count) in zip(names, facts.shares, strict=True)
        ],
        "Number of files, by the share of their rows that is deleted. Bars in full colour: files that OPTIMIZE rewrites, "
        f"because more than {percent_text(facts.max_share)} of their rows are deleted.",
        [(0.0, "0"), (float(max_count), f"{max_count:,}")],
        float(max_count),
    )
    row_count = unknown(facts.rows) if isinstance(facts.rows, Unknown) else number(facts.rows)
    vector_source = "deletionVector of the add actions"
    rows: list[tuple[str, Child, str]] = [
        ("Files with a deletion vector", number(facts.files), vector_source),
        ("Deleted rows in these files", number(facts.deleted_rows), f"{vector_source}: cardinality"),
        ("All rows in these files", row_count, "stats.numRecords"),
        ("Total size of the deletion vectors", bytes_text(facts.bytes), f"{vector_source}: sizeInBytes"),
        (
            f"Files with more than {percent_text(facts.max_share)} deleted rows",
            joined([f"{facts.beyond:,}", f", and {facts.files_without_share:,} unknown" if facts.files_without_share else None]),
            f"{vector_source}: cardinality; stats.numRecords",
        ),
    ]
    return joined([picture, fact_table("Deletion vectors of the version.", rows), source_line(facts.source)])
