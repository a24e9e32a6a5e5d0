"""The picture of a table, as a page and as metrics."""

from __future__ import annotations

from typing import Annotated

import typer

from pydelta_cli.parameters import At, Path, Version
from pydelta_cli.run import Run, say
from pydelta_cli.text import printable_json

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
    """A page about the table: commits, files, skipping, partitions, deleted rows, log, advice. With --json the facts of it."""
    if output is None and not run.as_json:
        raise typer.BadParameter("name the file of the page, or ask for --json.", param_hint="--output")
    picture = run.table(path, version, at).report(vacuum=vacuum, check_log=not quick)
    if output is not None:
        picture.write(output)
    if run.as_json:
        say(printable_json(picture.to_json()), is_safe=True)
    else:
        run.answer({"page": output, "version": picture.facts.identity.version})


def metrics(run: Run, path: Path, vacuum: Vacuum = False, quick: Quick = False) -> None:
    """The same facts as text for Prometheus."""
    say(run.table(path).metrics_text(vacuum=vacuum, check_log=not quick).removesuffix("\n"))
