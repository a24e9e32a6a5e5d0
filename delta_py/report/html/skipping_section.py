"""The section Skipping: how well each column lets queries skip files, and a map of the files."""

from __future__ import annotations

from collections.abc import Sequence

from delta_py.report.facts import ColumnSkipping, FileMap, SkippingFacts, Unknown
from delta_py.report.html.charts import Bar, lying_bars, rectangles
from delta_py.report.html.markup import Child, Markup, data, joined, shortened, tag
from delta_py.report.html.parts import folded, list_table, number, soft, source_line, unknown
from delta_py.report.words import count_text, percent_text

_MOST_BARS = 12
_SHARE_TICKS = [(0.0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")]


def skipping_body(facts: SkippingFacts) -> Markup:
    """The columns as bars and as a table, and the map of the files."""
    if not facts.columns:
        return joined([tag("p", "No column of the table can have minima and maxima."), source_line(facts.source)])
    parts: list[Child] = [_skipping_bars(facts.columns)]
    table = list_table(
        "Share of the files that a query reads if it filters by the column for one value, or for a tenth of the values. Queries "
        "seen: those of this process that filtered by it.",
        ("Column", "Type", "Files with statistics", "One value", "A tenth", "Queries seen", "Order"),
        [_column_row(column) for column in facts.columns],
        numbers=(2, 3, 4, 5),
    )
    columns_text = f"All {len(facts.columns)} columns" if len(facts.columns) > 1 else "The column"
    parts.append(folded(f"{columns_text} as a table", table))
    if facts.left_out:
        parts.append(soft(f"{count_text(facts.left_out, 'more column')} not shown."))
    parts += [tag("h3", "Map of the files by two columns"), _map_of_files(facts.map), source_line(facts.source)]
    return joined(parts)


def _skipping_bars(columns: Sequence[ColumnSkipping]) -> Markup:
    """A bar for each column with bounds: the share of the files that a query for one value reads."""
    shares = [(column, column.point_share) for column in columns if column.point_share is not None]
    if not shares:
        return tag("p", "No file has minima and maxima, so queries cannot skip files by them.")
    # First the columns that order the rows, then those that queries filter by most, then those that let queries skip most files.
    shares = sorted(shares, key=lambda pair: (pair[0].role is None, -pair[0].queries, pair[1]))[:_MOST_BARS]
    note = soft(
        "A query that filters by a column skips files whose minimum and maximum exclude a match. The bars show how many "
        "files it still reads: the fewer, the better. The estimate assumes that the values within a file are spread evenly."
    )
    bars = lying_bars(
        "Share of the files that a query reads if it filters for one value, and for a tenth of the values, of "
        f"{count_text(len(shares), 'column')}. The table below has the same data.",
        [_skipping_bar(column, share) for column, share in shares],
        "Share of the files that a query reads. Bar and first number: it filters for one value. Line and second number: "
        "it filters for a tenth of the values.",
        _SHARE_TICKS,
        1.0,
    )
    return joined([note, bars])


def _skipping_bar(column: ColumnSkipping, share: float) -> Bar:
    tenth = "unknown" if column.range_share is None else percent_text(column.range_share)
    return Bar(shortened(column.column, 60), share, f"{percent_text(share)}, {tenth}", column.range_share)


def _column_row(column: ColumnSkipping) -> tuple[Child, ...]:
    return (
        data(column.column),
        column.type,
        f"{column.with_bounds:,} of {column.files:,}",
        number(None) if column.point_share is None else percent_text(column.point_share),
        number(None) if column.range_share is None else percent_text(column.range_share),
        number(column.queries),
        column.role or "",
    )


def _map_of_files(file_map: FileMap | Unknown) -> Markup:
    """The map of the files over two columns, and a sentence about it; the reason if there is no map."""
    if isinstance(file_map, Unknown):
        return tag("p", unknown(file_map))
    kind = "Each file covers a rectangle, from its minima to its maxima"
    if not file_map.rectangles:
        kind += ". More files cover the places of stronger colour"
    mean = f"On average, {file_map.mean_depth:,.1f} of {count_text(file_map.files, 'file')} cover a point of the map"
    picture = rectangles(
        f"Map of {count_text(file_map.files, 'file')} by two columns. {kind}. {mean}.",
        file_map.rectangles,
        file_map.density,
        (shortened(file_map.x, 60), shortened(file_map.y, 60)),
        ((file_map.x_low, file_map.x_high), (file_map.y_low, file_map.y_high)),
    )
    without = f" Not shown: {count_text(file_map.without, 'file')} without minima and maxima of both." if file_map.without else ""
    words = f"The map shows {file_map.why}. {kind}. {mean}, and a file covers {percent_text(file_map.mean_area)} of it.{without}"
    return joined([tag("p", words), picture])
