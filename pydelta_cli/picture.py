"""The report of a table, as a page and as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pydelta_cli.formats.terminal_text import printable_json
from pydelta_cli.parameters import At, Path, Version
from pydelta_cli.run import Run, say

if TYPE_CHECKING:
    from delta_py.report.report import Report

Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="The page, an HTML file of this machine.")]
Vacuum = Annotated[bool, typer.Option("--vacuum", help="Also what VACUUM would delete: lists the table's directories.")]
Quick = Annotated[bool, typer.Option("--quick", help="Do not look for faults in the log, for which every checkpoint is read.")]


def report(
    run: Run,
    path: Path,
    output: Output = None,
    version: Version = None,
    at: At = None,
    vacuum: Vacuum = False,
    quick: Quick = False,
) -> None:
    """A page about the table: commits, files, skipping, partitions, deleted rows, log, advice. With --json its facts."""
    if output is None and not run.as_json:
        raise typer.BadParameter("name the file of the page, or ask for --json.", param_hint="--output")
    picture = run.table(path, version, at).report(vacuum=vacuum, check_log=not quick)
    if output is not None:
        _write(picture, output)
    if run.as_json:
        say(printable_json(picture.to_json()), is_safe=True)
    else:
        run.answer({"page": output, "version": picture.facts.identity.version})


def _write(picture: Report, output: str) -> None:
    from delta_py.errors import StorageError

    try:
        picture.write(output)
    except OSError as error:
        raise StorageError(
            f"The page {output} cannot be written: {error}. Give the name of a file in a directory that is there.", path=output
        ) from error


def metrics(run: Run, path: Path, vacuum: Vacuum = False, quick: Quick = False) -> None:
    """The same facts as text for Prometheus."""
    text = run.table(path).metrics_text(vacuum=vacuum, check_log=not quick)
    say(text.removesuffix("\n"), is_safe=True)  # labels contain no control characters for a terminal
