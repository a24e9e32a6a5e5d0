"""The command `pydelta`, and the list of its commands.

A new command is one line in COMMANDS: a function `name(run: Run, path: Path, ...)` in a module of its theme.
"""

from __future__ import annotations

from pydelta_cli import compare, copies, describe, files, picture, rows, upkeep
from pydelta_cli.app import Command, make_app

COMMANDS: tuple[Command, ...] = (
    rows.show,
    describe.schema,
    describe.history,
    describe.detail,
    describe.features,
    describe.streams,
    files.files,
    compare.diff,
    rows.cat,
    rows.load,
    upkeep.optimize,
    upkeep.zorder,
    upkeep.vacuum,
    upkeep.restore,
    upkeep.fsck,
    upkeep.checkpoint,
    copies.convert,
    copies.clone,
    upkeep.set_,
    upkeep.unset,
    picture.report,
    picture.metrics,
)

app = make_app(COMMANDS)


def main() -> None:
    app(prog_name="pydelta")
