"""The command `pydelta`, and the list of its commands.

A new command is one line in COMMANDS: a function `name(run: Run, path: Path, ...)` in the module for its subject.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from typer import Typer

from pydelta_cli import compare, copies, describe, explain_files, picture, show_and_load, upkeep
from pydelta_cli.app import Command, command_name, exit_code, make_app
from pydelta_cli.formats.standard_streams import mend_streams

COMMANDS: tuple[Command, ...] = (
    show_and_load.show,
    describe.schema,
    describe.history,
    describe.detail,
    describe.features,
    describe.streams,
    explain_files.files,
    compare.diff,
    show_and_load.cat,
    show_and_load.load,
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


class _WithoutPandas(PathFinder):
    """Finds the modules of sys.path except pandas: an import of pandas fails as if it were not installed, and so does a search
    for it.

    If pandas is installed, pyarrow imports it for the first list that becomes an array. No command needs it, and for most
    commands that import was half of their start time.
    """

    @classmethod
    def find_spec(cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return None if fullname == "pandas" else super().find_spec(fullname, path, target)


def main() -> None:
    """The process's program: it does not return. The process ends here, except with --spark, where others end it."""
    mend_streams()
    uses_spark = "--spark" in sys.argv
    if not uses_spark:  # pyspark needs pandas, and its workers need threads
        sys.meta_path[:] = [_WithoutPandas if finder is PathFinder else finder for finder in sys.meta_path]
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts its threads when it is imported
    gc.set_threshold(100_000)  # imported modules are not garbage: searching them for garbage took 6 % of the start time
    code = exit_code(_app_for(sys.argv[1:2]))
    if uses_spark:
        raise SystemExit(code)
    _leave(code)


def _app_for(words: Sequence[str]) -> Typer:
    """The program with only the command that one of the words names, else with all: typer builds each command again for every
    run."""
    named_commands = [command for command in COMMANDS if command_name(command) in words]
    return make_app(named_commands) if named_commands else app


def _leave(code: int) -> None:
    """Ends the process without Python's own cleanup, which took a tenth of a short command's time, and which kills pyarrow's
    threads while they work: a thread that waited for more data from a pipe aborted the process. Exit handlers are run before."""
    if code:
        gc.collect()  # removes unfinished files that a reference cycle of the error keeps alive
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(code)
