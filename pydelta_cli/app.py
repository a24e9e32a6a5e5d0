"""How functions become commands: their common options, how their errors are printed, and how they exit.

A command is a function `name(run: Run, ...) -> int | None` with typer's annotations; the return value is the exit code (None: 0).
"""

from __future__ import annotations

import inspect
import logging
import re
import sys
import traceback
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from delta_py.errors import DeltaError
from delta_py.storage.storage_errors import storage_error
from delta_py.time_zones import local_time_zone
from delta_py.types.similar_names import did_you_mean
from pydelta_cli.formats.standard_streams import AnswerLostError, ReaderGone, close_stdout
from pydelta_cli.formats.terminal_text import printable, printable_lines
from pydelta_cli.parameters import store_options_of
from pydelta_cli.run import FAILED, INTERRUPTED, Run, is_styled, say

Command = Callable[..., int | None]

_COMMON = {
    "json_": Annotated[
        bool,
        typer.Option("--json", help="Answer with one JSON object, in the form of docs/command-line.md: the default on a pipe."),
    ],
    "text": Annotated[bool, typer.Option("--text", help="Answer with text for people: the default on a terminal.")],
    "tz": Annotated[
        str | None,
        typer.Option(
            "--tz",
            metavar="ZONE",
            help="Time zone in which times are read and shown. Without it UTC; in text, times of commits and files are local.",
        ),
    ],
    "option": Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Option of an object store or coordinator; may be repeated."),
    ],
    "debug": Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")],
}
_DEFAULTS: dict[str, Any] = {"json_": False, "text": False, "tz": None, "option": None, "debug": False}


class _Quick:
    """A command, or the group of commands, whose parameters convert their values with _QuickValue."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with a quicker conversion of their values than typer's."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if "get_runtime_param" not in vars(parameter):
                quick = _QuickValue(parameter.get_runtime_param)
                parameter.get_runtime_param = partial(_itself, quick)
        return parameters


class _Command(_Quick, TyperCommand):
    """A command that suggests similar options if the user mistypes one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            if (option := getattr(error, "option_name", None)) is not None and hasattr(error, "possibilities"):
                error.possibilities = None  # typer's, which are not near
                options = [name for parameter in self.get_params(ctx) for name in parameter.opts if name.startswith("--")]
                error.message = f"`{ctx.info_name}` has no option {option}.{did_you_mean(option, options)}"
            raise


class _Group(_Quick, TyperGroup):
    """Lists commands in the order in which they were added."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except TyperException as error:
            if not args[0].startswith("-"):
                error.message += did_you_mean(args[0], self.commands)
            raise


class _QuickValue:
    """Replaces typer's conversion of a parameter's value, which imports pydantic: a fifth of the start time of a command.

    Text, choices, whole numbers within their bounds and defaults do not need pydantic. typer converts all other values, or
    reports why they are invalid.
    """

    def __init__(self, typers: Callable[[], Any]) -> None:
        """typers: returns typer's own conversion of the parameter's value."""
        self._typers = typers

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value in the parameter's type. Frequent types are converted here; the others by typer, which is slow to load."""
        param_type = param.type_descriptor
        if value is None:
            return () if param_type.is_list else None
        if value is param.default or (param_type.annotation is str and isinstance(value, str)):
            return value
        if param_type.annotation == list[str] and isinstance(value, list | tuple):
            return list(value)
        if param_type.is_choice:
            for choice in param_type.choices:
                if choice.value == value:
                    return choice
        if (
            param_type.annotation is int
            and value.isascii()
            and value.isdigit()
            and _is_within(int(value), param_type.parameter_info)
        ):
            return int(value)
        return self._typers().coerce(value, param=param, ctx=ctx)


def _itself(quick: _QuickValue) -> _QuickValue:
    return quick


def _is_within(number: int, bounds: Any) -> bool:
    return (bounds.min is None or bounds.min <= number) and (bounds.max is None or number <= bounds.max)


def command_name(command: Command) -> str:
    return command.__name__.rstrip("_")


def make_app(commands: Sequence[Command]) -> typer.Typer:
    app = typer.Typer(
        name="pydelta",
        cls=_Group,
        help="Inspect and maintain Delta tables. Exit codes: 0 done, 1 found something, 2 wrong use, 3 failed, "
        "4 could not tell (diff).",
        no_args_is_help=True,
        suggest_commands=False,
        context_settings={"max_content_width": 120},
        rich_markup_mode=None,  # texts are plain, so help does not need rich
        pretty_exceptions_enable=False,
    )
    for command in commands:
        text = inspect.getdoc(command) or ""
        sentence = text.partition("\n")[0].partition(". ")[0].removesuffix(".")
        called = _with_common_options(command)
        app.command(name=command_name(command), cls=_Command, help=text, short_help=f"{sentence}.")(called)
    app.callback()(_whole_program)
    return app


def _show_version(is_requested: bool) -> None:
    if is_requested:
        from delta_py.release import own_version

        say(f"pydelta {own_version()}")
        raise typer.Exit


Release = Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version, and exit.")]


def _whole_program(version: Release = False) -> None:
    """The options of `pydelta` without a command."""


def _with_common_options(command: Command) -> Callable[..., None]:
    """The command as a function for typer: with the common options, and without the run, which is made of them."""
    hints = typing.get_type_hints(command, include_extras=True)
    command_parameters = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in inspect.signature(command).parameters.values()
        if parameter.name != "run"
    ]
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS[name], annotation=annotation)
        for name, annotation in _COMMON.items()
    ]

    def called(
        *args: Any, json_: bool, text: bool, tz: str | None, option: list[str] | None, debug: bool, **kwargs: Any
    ) -> None:
        if json_ and text:
            raise typer.BadParameter("say either --json or --text, not both.", param_hint="--json")
        as_json = json_ or not (text or sys.stdout.isatty())
        run = Run(
            as_json=as_json,
            zone=tz or "UTC",
            shown_zone=tz or ("UTC" if as_json else local_time_zone()),
            storage=store_options_of(option),
            has_json_option=json_,
        )
        code = _guarded(lambda: command(run.checked(), *args, **kwargs), debug)
        if code:
            raise typer.Exit(code)

    parameters = [*(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in command_parameters), *common]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    called.__name__ = command.__name__
    return called


def exit_code(app: typer.Typer) -> int:
    """Runs the command that the process was started with, and returns the exit code. If the reader of stdout is
    gone, that is no error."""
    try:
        try:
            app(prog_name="pydelta")
        except SystemExit as ended:
            sys.stdout.flush()
            return ended.code if isinstance(ended.code, int) else FAILED
    except ReaderGone:
        close_stdout()
    except AnswerLostError as error:
        close_stdout()
        return _failed(str(error), debug=False)
    except OSError as error:  # --install-completion writes files
        return _failed(str(storage_error(error)), debug=False)
    return 0


def _guarded(command: Callable[[], int | None], debug: bool) -> int:
    """Returns the exit code. Errors of tables and of the machine are printed as one message each."""
    with _warnings_on_stderr():
        return _exit_code(command, debug)


def _exit_code(command: Callable[[], int | None], debug: bool) -> int:
    try:
        return command() or 0
    except (typer.Exit, typer.Abort, TyperException, ReaderGone, AnswerLostError):
        raise
    except KeyboardInterrupt:
        say("pydelta: interrupted. What was committed before stays; what was not is in no version.", error=True)
        return INTERRUPTED
    except DeltaError as error:
        return _failed(f"{error}{_option_advice(error)}", debug)
    except OSError as error:
        return _failed(str(storage_error(error)), debug)
    except Exception as error:
        # A file that cannot be decoded, a failure in Spark, or a bug in pydelta.
        return _failed(f"{type(error).__name__}: {error}", debug)


def _failed(message: str, debug: bool) -> int:
    if debug:
        say(traceback.format_exc(), error=True)
    say(f"{_program_name('red')} {printable_lines(message)}", is_safe=True, error=True)
    return FAILED


def _program_name(colour: str) -> str:
    """The beginning of a message on standard error."""
    return typer.style("pydelta:", fg=colour) if is_styled(sys.stderr) else "pydelta:"


def _option_advice(error: DeltaError) -> str:
    """How to give the storage option that an error names first; empty if it names none."""
    from delta_py.storage.store_options import OPTION_NAMES

    names = {option.name for option in OPTION_NAMES}
    named = next((name for name in re.findall(r"[a-z0-9]+\.[a-z0-9_]+", error.message) if name in names), None)
    return "" if named is None else f" On the command line an option is given as --option {named}=VALUE."


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{_program_name('yellow')} {printable(super().format(record))}"


class _Once(logging.Filter):
    """Prints each warning once, even if a command opens a table more than once."""

    def __init__(self) -> None:
        super().__init__()
        self._printed_texts: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in self._printed_texts
        self._printed_texts.add(text)
        return is_new


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Warnings of delta_py contain names of tables and files, so they are escaped too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Printable("%(levelname)s: %(message)s"))
    handler.addFilter(_Once())
    log = logging.getLogger("delta_py")
    log.addHandler(handler)
    was_propagating, log.propagate = log.propagate, False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = was_propagating
