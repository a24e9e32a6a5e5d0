"""Which files a query reads, and why."""

from __future__ import annotations

from pydelta_cli.parameters import At, Filter, Path, Version
from pydelta_cli.run import Form, Run, say


def files(run: Run, path: Path, filter: Filter = None, version: Version = None, at: At = None) -> None:
    """Files of the table; with --filter, which of them a query reads, and why it reads or skips each."""
    import pyarrow.compute as pc

    table = run.table(path, version, at)
    explained = table.explain_files(filter)
    is_read = explained["is_read"]
    read = explained.filter(is_read)
    form = {
        "version": table.version,
        "filter": filter,
        "files_total": explained.num_rows,
        "files_read": read.num_rows,
        "bytes_total": pc.sum(explained["size"]).as_py() or 0,
        "bytes_read": pc.sum(read["size"]).as_py() or 0,
        "files": run.rows(explained),
    }
    run.answer(form, lambda: _show_files(run, form))


def _show_files(run: Run, form: Form) -> None:
    from delta_py.report.words import count_text
    from delta_py.types.sizes import bytes_text
    from pydelta_cli.formats.text_tables import Column

    has_filter = form["filter"] is not None
    columns = [Column("file"), Column("size", is_number=True), Column("rows", is_number=True)]
    columns += [Column("read"), Column("reason", is_prose=True), Column("condition")] if has_filter else []
    columns += [Column("minimum"), Column("maximum"), Column("nulls", is_number=True)] if has_filter else []
    rows = [
        (
            file["path"],
            bytes_text(file["size"]),
            None if file["rows"] is None else f"{file['rows']:,}",
            "yes" if file["is_read"] else "no",
            file["reason"],
            file["condition"],
            file["minimum"],
            file["maximum"],
            None if file["null_count"] is None else f"{file['null_count']:,}",
        )[: len(columns)]
        for file in form["files"]
    ]
    if rows:
        run.print_first(columns, rows, "file")
    total = f"{count_text(form['files_total'], 'file')} with {bytes_text(form['bytes_total'])}"
    if has_filter:
        say(f"A query with this filter reads {form['files_read']:,} of {total}: {bytes_text(form['bytes_read'])}.")
    else:
        say(f"Version {form['version']} has {total}.")
