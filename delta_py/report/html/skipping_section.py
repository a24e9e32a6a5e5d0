"""The section Skipping: how well each column lets queries skip files, and a map of the files."""

from __future__ import annotations

from delta_py.report.facts import ColumnSkipping, FileMap, SkippingFacts, Unknown
from delta_py.report.html.charts import Bar, lying_bars, rectangles
from delta_py.report.html.markup import Child, Markup, data, joined, shortened, tag
from delta_py.report.html.parts import folded, list_table, number, soft, source_line, unknown
from delta_py.report.words import count_text, percent_text

_BARS = 12
_SHARE_TICKS = [(0.0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")]


def skipping_body(facts: SkippingFacts) -> Markup:
    if not facts.columns:
        return joined([tag("p", "No column of the table can have minima and maxima."), source_line(facts.source)])
    columns_with_share = [column for column in facts.columns if column.point_share is not None]
    ordered = sorted(columns_with_share, key=lambda column: (column.role is None, -column.queries, column.point_share or 0.0))[
        :_BARS
    ]
    parts: list[Child] = [
        soft(
            "The share of the files that a query reads, because minima and maxima exclude the others. A small share is good. "
            "The distribution of values within a file is unknown; the estimate assumes that it is even."
        )
    ]
    if ordered:
        parts.append(
            lying_bars(
                f"Share of files read for one value and for a tenth of the values, of {count_text(len(ordered), 'column')}. "
                "The table below says the same.",
                [_skipping_bar(column, share) for column in ordered if (share := column.point_share) is not None],
                "files read, in percent: bar and first number for one value, line and second number for a tenth of the values",
                _SHARE_TICKS,
                1.0,
            )
        )
    else:
        parts.append(tag("p", "No file has minima and maxima: how well files can be skipped is unknown."))
    table = list_table(
        "How well each column lets queries skip files",
        ("Column", "Type", "Files with bounds", "One value reads", "A tenth reads", "Queries seen", "Order"),
        [_column_row(column) for column in facts.columns],
        (2, 3, 4, 5),
    )
    parts.append(folded(f"All {count_text(len(facts.columns), 'column')} as a table", table))
    if facts.left_out:
        parts.append(soft(f"{count_text(facts.left_out, 'column')} more were not looked at."))
    parts += [tag("h3", "Files over two columns"), _map(facts.map), source_line(facts.source)]
    return joined(parts)


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


def _map(file_map: FileMap | Unknown) -> Markup:
    if isinstance(file_map, Unknown):
        return tag("p", unknown(file_map))
    kind = "the darker a place, the more files lie over it"
    if file_map.rectangles:
        kind = "each file is a rectangle from its minima to its maxima"
    mean = f"On average {file_map.mean_depth:,.1f} of {count_text(file_map.files, 'file')} overlap at a point of the map"
    picture = rectangles(
        f"Map of {count_text(file_map.files, 'file')} over two columns: {kind}. {mean}.",
        file_map.rectangles,
        file_map.density,
        (shortened(file_map.x, 60), shortened(file_map.y, 60)),
        ((file_map.x_low, file_map.x_high), (file_map.y_low, file_map.y_high)),
    )
    without = f" {count_text(file_map.without, 'file')} without bounds of both are not in it." if file_map.without else ""
    words = tag(
        "p",
        data(file_map.x),
        " to the right, ",
        data(file_map.y),
        f" upwards: {file_map.why}; {kind}. {mean}, and one covers {percent_text(file_map.mean_area)} of it.{without}",
    )
    return joined([words, picture])
