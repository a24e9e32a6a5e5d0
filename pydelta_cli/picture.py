"""The report of a table: on the terminal, as a page, and as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pydelta_cli.formats.terminal_text import printable, printable_json
from pydelta_cli.parameters import At, Path, Version
from pydelta_cli.run import Run, say

if TYPE_CHECKING:
    from delta_py.report.facts import TableFacts
    from delta_py.report.report import Report

Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="The page, an HTML file of this machine.")]
Open = Annotated[bool, typer.Option("--open", help="Show the page in a browser; without -o from a private temporary file.")]
Vacuum = Annotated[bool, typer.Option("--vacuum", help="Also what VACUUM would delete: lists the table's directories.")]
Quick = Annotated[bool, typer.Option("--quick", help="Do not look for faults in the log, for which every checkpoint is read.")]


def report(
    run: Run,
    path: Path,
    output: Output = None,
    open_page: Open = False,
    version: Version = None,
    at: At = None,
    vacuum: Vacuum = False,
    quick: Quick = False,
) -> None:
    """A summary of files, rows, commits and log, with advice. With -o or --open the whole report as a page."""
    picture = run.table(path, version, at).report(vacuum=vacuum, check_log=not quick)
    page = _private_file() if open_page and output is None else output
    if page is not None:
        _write(picture, page)
    if open_page and page is not None and not _open(page):
        say(f"No browser could be started. The page is {page}.", error=True)
    if run.as_json:
        say(printable_json(picture.to_json()), is_safe=True)
        return
    _show_facts(run, picture.facts)
    say("Add -o page.html for the whole report as a page, or --open to see it." if page is None else f"The page is {page}.")


def _private_file() -> str:
    """A new file that only this user can read. It stays, because a browser may read it after this process has ended."""
    import os
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix="pydelta-report-", suffix=".html")
    os.close(descriptor)
    return name


def _open(page: str) -> bool:
    """Whether a browser was started."""
    import webbrowser
    from pathlib import Path as LocalPath

    return webbrowser.open(LocalPath(page).absolute().as_uri())


def _show_facts(run: Run, facts: TableFacts) -> None:
    from delta_py.report.facts import Unknown
    from delta_py.report.words import count_text
    from delta_py.types.sizes import bytes_text

    identity, files, commits, log = facts.identity, facts.files, facts.commits, facts.log
    rows = files if isinstance(files, Unknown) else files.rows
    timestamp_ms = identity.timestamp_ms
    run.print_values(
        {
            "table": identity.name or identity.root,
            "path": identity.root if identity.name else None,
            "version": f"{identity.version:,}",
            "committed": "unknown" if isinstance(timestamp_ms, Unknown) else run.time_text(timestamp_ms),
            "files": "unknown"
            if isinstance(files, Unknown)
            else f"{count_text(files.count, 'file')}, {bytes_text(files.bytes)}"
            + ("" if files.median_bytes is None else f", median {bytes_text(files.median_bytes)}"),
            "rows": f"unknown: {rows.unknown}" if isinstance(rows, Unknown) else f"{rows:,}",
            "columns": f"{identity.columns:,}",
            "partitioned by": ", ".join(identity.partition_columns) or None,
            "commits": "unknown" if isinstance(commits, Unknown) else f"{commits.in_log:,} in the log",
            "log": "unknown"
            if isinstance(log, Unknown)
            else f"{count_text(log.files_to_load, 'file')} to load, {bytes_text(log.bytes_to_load)}",
        }
    )
    for item in facts.advice:
        say("")
        say(printable(item.title), colour="red" if item.urgent else "yellow")
        say(f"  {printable(item.reason)}")
        if item.cli is not None:
            say(f"  {printable(item.cli)}")
        if item.after_dry_run is not None and item.after_dry_run.cli is not None:
            say(f"  {printable(item.after_dry_run.cli)}")
    say("")


def _write(picture: Report, output: str) -> None:
    from delta_py.errors import StorageError

    try:
        picture.write(output)
    except OSError as error:
        raise StorageError(
            f"The page {output} cannot be written: {error}. Give the name of a file in a directory that is there.", path=output
        ) from error


def metrics(run: Run, path: Path, vacuum: Vacuum = False, quick: Quick = False) -> None:
    """The facts of the report as text for Prometheus."""
    text = run.table(path).metrics_text(vacuum=vacuum, check_log=not quick)
    say(text.removesuffix("\n"), is_safe=True)  # labels contain no control characters for a terminal
