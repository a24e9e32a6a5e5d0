"""The command line as a process: pipes, what it needs, how quickly it starts."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from tests.support.runs.sampling import sampled

PYDELTA = [sys.executable, "-m", "pydelta_cli"]
WITHOUT_SPARK = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
sys.argv = ["pydelta", *sys.argv[1:]]
from pydelta_cli.main import main
main()
"""


@pytest.fixture
def table(tmp_path: Path) -> str:
    write_delta(str(tmp_path / "t"), pa.table({"id": range(200_000)}))
    return str(tmp_path / "t")


def test_reader_that_goes_is_no_error(table: str) -> None:
    command = " ".join([*PYDELTA, "cat", table])
    script = f"set -o pipefail; {command} | head -2"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["id", "0"] and done.stderr == "" and done.returncode == 0


CAT = [f"cat --format {name}" for name in ("csv", "json", "parquet", "arrow")]


@pytest.mark.parametrize("command", sampled(["show", "schema", "history --json", "files", *CAT], 2))
def test_reader_that_was_never_there_is_no_error(table: str, command: str) -> None:
    name, *options = command.split()
    script = f"set -o pipefail; {' '.join([*PYDELTA, name, table, *options])} | true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stderr == "" and done.returncode == 0


def test_runs_without_spark(table: str) -> None:
    for arguments in (["show", table, "--limit", "1"], ["optimize", table], ["history", table, "--json"]):
        done = subprocess.run([sys.executable, "-c", WITHOUT_SPARK, *arguments], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    arguments = ["optimize", table, "--spark"]
    done = subprocess.run([sys.executable, "-c", WITHOUT_SPARK, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 3 and "pydelta-lake[spark]" in done.stderr


def cpu_seconds_of_children() -> float:
    """Of those that have ended: what else the machine does is not in it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_starts_without_what_it_does_not_need(table: str) -> None:
    seconds = []
    for _ in range(3):
        begin = cpu_seconds_of_children()
        done = subprocess.run([*PYDELTA, "--help"], capture_output=True, text=True, timeout=120)
        seconds.append(cpu_seconds_of_children() - begin)
        assert done.returncode == 0 and "zorder" in done.stdout
    assert min(seconds) < 2.0, seconds


NEVER = {
    "pyspark", "py4j", "pandas", "pydantic", "pyarrow.dataset", "rich.console", "boto3", "duckdb", "polars", "psycopg", "sqlite3"
}
ROWS = {"delta_py.parquet.file_reader", "delta_py.scan.planning"}
SQL = {"sqlglot", "delta_py.expressions.parse", "delta_py.expressions.evaluate"}
WRITING = {"delta_py.commit.transaction", "delta_py.row_rules.conform", "delta_py.checkpoint.checkpoint"}
WRITING |= {"delta_py.changes.change_feed"}
MODULES = """
import atexit, sys
from pydelta_cli.main import main
sys.argv = ["pydelta", *sys.argv[1:]]
def look():
    LOOK
atexit.register(look)
main()
"""
LOADED = "print(*sys.modules, file=sys.stderr)"


@pytest.mark.parametrize(
    ("arguments", "needed", "unwanted"),
    [
        ("--help", "typer", {"delta_py.table", "pyarrow", "numpy", "rich"} | ROWS | SQL | WRITING),
        ("schema --help", "typer", {"delta_py.table", "pyarrow", "numpy", "rich"} | ROWS | SQL | WRITING),
        ("schema TABLE", "delta_py.table", ROWS | SQL | WRITING),
        ("schema TABLE --json", "delta_py.table", {"rich"} | ROWS | SQL | WRITING),
        ("history TABLE --limit 1", "delta_py.log.history", ROWS | SQL | WRITING),
        ("streams TABLE", "delta_py.table", {"rich"} | ROWS | SQL | WRITING),
        ("detail TABLE", "delta_py.definition.detail", {"rich"} | SQL | WRITING),
        ("show TABLE --limit 1", "delta_py.parquet.file_reader", SQL | WRITING),
        ("cat TABLE --format json --limit 1", "delta_py.parquet.file_reader", {"rich"} | SQL | WRITING),
        ("files TABLE --filter id=1", "sqlglot", WRITING),
    ],
)
def test_command_imports_nothing_that_it_does_not_need(table: str, arguments: str, needed: str, unwanted: set[str]) -> None:
    words = arguments.replace("TABLE", table).split()
    code = MODULES.replace("LOOK", LOADED)
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split())
    assert needed in loaded and sorted(loaded & (NEVER | unwanted)) == []


PROBE = """
from importlib.util import find_spec
print("is found" if find_spec("pandas") else "is not found", file=sys.stderr)
try:
    import pandas
    print("is imported", file=sys.stderr)
except ModuleNotFoundError:
    print("is missing", file=sys.stderr)
"""


def test_pandas_is_there_for_spark_alone(table: str) -> None:
    code = MODULES.replace("LOOK", PROBE.replace("\n", "\n    "))
    for options, said in (["--spark"], "is found\nis imported"), ([], "is not found\nis missing"):
        command = [sys.executable, "-c", code, "optimize", f"{table}@v0", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert "names a version" in done.stderr and said in done.stderr, done.stderr


# ---------------------------------------------------------------- output that cannot be written, and Ctrl-C


def shell(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = f"pydelta() {{ {' '.join(PYDELTA)} \"$@\"; }}\n"
    return subprocess.run(
        ["bash", "-c", program + script], env=os.environ | environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("command", sampled(["schema", "show", "history --json", "metrics", *CAT], 2))
def test_answer_that_does_not_fit_is_a_failure_that_says_so(table: str, command: str) -> None:
    name, *options = command.split()
    done = shell(f"pydelta {name} {table} {' '.join(options)} > /dev/full")
    assert done.returncode == 3 and "could not be written to standard output" in done.stderr and "No space" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", ["--help", "show --help", "--show-completion"])
def test_help_that_does_not_fit_is_a_failure_that_says_so(arguments: str) -> None:
    done = shell(f"pydelta {arguments} > /dev/full; exit $?")  # completion asks for the name of the shell, which has to stay
    assert done.returncode == 3 and "could not be written to standard output" in done.stderr
    assert done.stderr.count("\n") == 1
    done = shell(f"set -o pipefail; pydelta {arguments} | true")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("", 2),
        ("nothing", 2),
        ("schema TABLE --nothing", 2),
        ("schema TABLE-none", 3),
        ("schema TABLE >/dev/full", 3),
        ("schema TABLE --debug --at never", 3),
        ("optimize TABLE", 0),
    ],
)
def test_exit_code_tells_what_standard_error_does_not_take(table: str, command: str, code: int) -> None:
    command = command.replace("TABLE", table)
    assert shell(f"pydelta {command} 2>/dev/full").returncode == code
    assert shell(f"set -o pipefail; pydelta {command} 2>&1 | true").returncode == code


def test_completion_that_cannot_be_installed_says_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    done = shell("pydelta --install-completion; exit $?", HOME=str(tmp_path / "home"))
    assert done.returncode == 3 and "[DELTA_STORAGE_ERROR]" in done.stderr and f"{tmp_path}/home" in done.stderr, done
    assert done.stderr.count("\n") == 1


def test_output_that_is_closed_is_no_error(table: str) -> None:
    for command in (f"schema {table}", f"cat {table} --limit 1", f"set {table} a.b=c"):
        done = shell(f"pydelta {command} >&-")
        assert done.returncode == 0 and done.stderr == "", done
    assert shell(f"pydelta schema {table}none 2>&-").returncode == 3


def test_what_a_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    write_delta(str(tmp_path / "t"), pa.table({"日本": ["é"]}))
    done = shell(f"pydelta schema {tmp_path}/t && pydelta show {tmp_path}/none-日本", PYTHONIOENCODING="ascii")
    assert "\\u65e5\\u672c" in done.stdout and "\\u65e5\\u672c does not exist" in done.stderr and done.returncode == 3


@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize("place", ["-", "pipe"])
def test_load_that_is_interrupted_leaves_the_table_as_it_was(tmp_path: Path, suffix: str, place: str) -> None:
    path, pipe = str(tmp_path / "t"), tmp_path / "pipe"
    write_delta(path, pa.table({"id": [1]}))
    os.mkfifo(pipe)
    file = "-" if place == "-" else str(pipe)
    arguments = [*PYDELTA, "load", path, file, "--format", suffix, "--mode", "append"]
    loading = subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a shell's background jobs ignore it
    )
    assert loading.stdin is not None and loading.stderr is not None
    with loading.stdin if place == "-" else open(pipe, "wb") as sink:
        row = b"2\n" if suffix == "csv" else b'{"id": 2}\n'
        sink.write((b"id\n" if suffix == "csv" else b"") + row * (20_000_000 // len(row)))  # more than a block
        sink.flush()
        time.sleep(1)
        loading.send_signal(signal.SIGINT)
        assert loading.wait(60) == 130
    assert b"interrupted" in loading.stderr.read()
    assert DeltaTable(path).version == 0 and DeltaTable(path).to_arrow()["id"].to_pylist() == [1]


READING = """
import sys, time
import delta_py.row_changes.write
from pydelta_cli.formats import row_input
from pydelta_cli.main import main

class SlowPipe(row_input._Pipe):
    def read(self, size=-1):
        time.sleep(0.05)
        return b"2\\n" * (size // 2)

def interrupted(path, reader, **options):
    interrupted.reader = reader  # its thread goes on
    reader.read_next_batch()
    raise KeyboardInterrupt

row_input._Pipe = SlowPipe
delta_py.row_changes.write.write_delta = interrupted
sys.argv = ["pydelta", "load", sys.argv[1], "-", "--format", "csv"]
main()
"""


def test_end_while_a_thread_of_pyarrow_still_reads_is_no_crash(tmp_path: Path) -> None:
    command = [sys.executable, "-c", READING, str(tmp_path / "t")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 130 and done.stderr.count("\n") == 1 and "interrupted" in done.stderr, done.stderr


def test_a_pipe_is_read_to_its_end() -> None:
    text = b"x" * 300_000
    reads = "len(pipe.read(7)), len(pipe.read()), pipe.read()"
    script = f"from pydelta_cli.formats.row_input import _Pipe; pipe = _Pipe(0); print({reads})"
    done = subprocess.run([sys.executable, "-c", script], input=text, capture_output=True, timeout=120)
    assert done.stdout.split() == [b"7", b"299993", b"b''"], done.stderr


def test_load_from_a_pipe_of_the_shell(tmp_path: Path) -> None:
    done = shell(f"pydelta load {tmp_path}/t <(seq 300000 | sed 1iid) --format csv")
    assert done.returncode == 0, done.stderr
    assert DeltaTable(f"{tmp_path}/t").to_arrow().num_rows == 300_000
    refused = shell(f"pydelta load {tmp_path}/t <(echo) --format parquet --mode append")
    assert refused.returncode == 2 and "its footer comes last" in refused.stderr


# What root may do although the permissions of a file forbid it.
AS_OWNER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.mark.skipif(bool(AS_OWNER) and shutil.which("setpriv") is None, reason="root may write what nobody may, without setpriv")
@pytest.mark.parametrize("command", ["set TABLE a.b=c", "optimize TABLE", "load TABLE FILE --mode append", "checkpoint TABLE"])
def test_table_that_may_not_be_written_says_so(table: str, tmp_path: Path, command: str) -> None:
    write_delta(table, pa.table({"id": [1]}), mode="append")
    (tmp_path / "rows.csv").write_text("id\n1\n")
    directories = [Path(table), Path(table) / "_delta_log"]
    for directory in directories:
        directory.chmod(0o555)
    words = command.replace("TABLE", table).replace("FILE", str(tmp_path / "rows.csv")).split()
    done = subprocess.run([*AS_OWNER, *PYDELTA, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 3 and "[DELTA_" in done.stderr and "denied" in done.stderr and table in done.stderr, done


# ---------------------------------------------------------------- completion

OFFERS = """
source "$HOME/.bashrc"
complete -p pydelta
offers() { COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=(); _pydelta_completion pydelta; echo "${COMPREPLY[*]}"; }
offers pydelta s
offers pydelta cat t --form
offers pydelta cat t --format ""
offers pydelta load t f --mode over
offers pydelta schema /some/pa
"""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with a home of its own and `pydelta` among its programs."""
    program = tmp_path / "bin" / "pydelta"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pydelta_cli "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}"}


def test_bash_completes_commands_options_and_choices(home: dict[str, str]) -> None:
    # With a command behind them bash stays their parent, by which they know the shell.
    install = ["bash", "-c", "pydelta --install-completion && pydelta --show-completion && exit 0"]
    done = subprocess.run(install, env=home, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "complete -o default -F _pydelta_completion pydelta" in done.stdout, done.stderr
    done = subprocess.run(["bash", "-c", OFFERS], env=home, capture_output=True, text=True, timeout=120)
    names = "complete -o default -F _pydelta_completion pydelta"
    # Where nothing is offered, bash offers files.
    offered = ["show schema streams set", "--format", "csv json parquet arrow", "overwrite", ""]
    assert done.stdout.splitlines() == [names, *offered] and done.stderr == ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_commands_and_options(home: dict[str, str], shell: str) -> None:
    for words, offered in (("pydelta s", {"show", "schema", "streams", "set"}), ("pydelta cat t --form", {"--format"})):
        asked = {"_PYDELTA_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": words}
        asked |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        done = subprocess.run(["pydelta"], env=home | asked, capture_output=True, text=True, timeout=120)
        assert offered <= set(re.findall(r"[\w-]+", done.stdout)) and "vacuum" not in done.stdout, done
