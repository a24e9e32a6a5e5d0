"""Which files a query reads, and why."""

from __future__ import annotations

from pydelta_cli.parameters import At, Filter, Path, Version
from pydelta_cli.run import Run


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
    columns = ["path", "size", "rows"]
    columns += ["is_read", "reason", "condition", "minimum", "maximum", "null_count"] if filter is not None else []
    run.answer(form, {"files": columns})
