"""Servers that speak the protocols of object stores on this machine: their versions, and how they are installed.

    python -m tests.support.servers.emulator_programs      # installs what is missing (make emulators)
    VERSITYGW.path("versitygw")                            # of a file of an installed one

They are outside of the work tree, each version in a separate directory, so that they are built once: in PYDELTA_EMULATORS, which
is ~/.cache/pydelta-emulators by default. A directory with such a name is complete: it gets its name when everything is in it.
These servers decide conditional writes as the stores do. Others do not: moto and gcp-storage-emulator let several writers win.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_POM = Path(__file__).resolve().parent / "java" / "pom.xml"
_NICE = ("nice", "-n", "10")


class ToolError(Exception):
    """A tool is missing, or has failed. The message is for the person who ran `make emulators`."""


@dataclass(frozen=True)
class Program:
    """tools: programs that are needed to install it or to run it. install: puts it into the first directory, using the second
    one, which is deleted afterwards."""

    name: str
    version: str
    tools: Mapping[str, str]
    install: Callable[[Program, Path, Path], None]

    @property
    def directory(self) -> Path:
        return emulators_directory() / f"{self.name}-{self.version}"

    def path(self, *parts: str) -> Path:
        """The path of one of its files. Raises ToolError if it is not installed."""
        if not self.directory.is_dir():
            raise ToolError(f"{self.name} {self.version} is not in {self.directory.parent}. Type: make emulators")
        return self.directory.joinpath(*parts)


def emulators_directory() -> Path:
    directory_text = os.environ.get("PYDELTA_EMULATORS")
    return Path(directory_text).absolute() if directory_text else Path.home() / ".cache" / "pydelta-emulators"


# ---------------------------------------------------------------- ways to install


def _go_install(module: str) -> Callable[[Program, Path, Path], None]:
    """At most two compilers at a time, and a garbage collector that runs often: otherwise a linker takes a gigabyte."""

    def install(program: Program, target: Path, scratch: Path) -> None:
        directories = {"GOBIN": target, "GOCACHE": scratch / "build", "GOMODCACHE": scratch / "modules", "GOTMPDIR": scratch}
        settings = {"GOFLAGS": "-p=2 -modcacherw -buildvcs=false -trimpath", "GOGC": "50", "CGO_ENABLED": "0"}
        command = ["go", "install", "-ldflags=-s -w", f"{module}@v{program.version}"]
        _run(command, {name: str(path) for name, path in directories.items()} | settings)

    return install


def _npm_install(program: Program, target: Path, scratch: Path) -> None:
    options = ("--no-fund", "--no-audit", "--no-save", "--ignore-scripts", "--loglevel=error")
    command = ["npm", "install", f"--prefix={target}", f"--cache={scratch / 'npm'}", *options]
    _run([*command, f"{program.name}@{program.version}"])


def _maven_copy(program: Program, target: Path, scratch: Path) -> None:
    command = ["mvn", "-q", "-B", f"--file={_POM}", "dependency:copy-dependencies", "-DincludeScope=runtime"]
    _run([*command, f"-Ddynamodb.version={program.version}", f"-DoutputDirectory={target}"])


def _run(command: Sequence[str], settings: Mapping[str, str] | None = None) -> None:
    """Raises ToolError with the end of its output."""
    finished = subprocess.run(
        [*_NICE, *command], env={**os.environ, **(settings or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if finished.returncode:
        raise ToolError(f"{' '.join(command)}\nended with {finished.returncode}:\n{finished.stdout[-3000:]}")


# ---------------------------------------------------------------- the programs

_GO = {"go": "Go 1.26 or newer"}

VERSITYGW = Program("versitygw", "1.8.0", _GO, _go_install("github.com/versity/versitygw/cmd/versitygw"))
FAKE_GCS = Program("fake-gcs-server", "1.56.1", _GO, _go_install("github.com/fsouza/fake-gcs-server"))
# Later versions need a newer Node.
AZURITE = Program("azurite", "3.35.0", {"node": "Node.js 20 or newer", "npm": "npm, which comes with Node.js"}, _npm_install)
DYNAMODB_LOCAL = Program("dynamodb-local", "2.6.1", {"java": "Java 17", "mvn": "Maven 3"}, _maven_copy)

# Builds on the same cores run one after the other; downloads do not wait for them.
_QUEUES = ((VERSITYGW, FAKE_GCS), (AZURITE,), (DYNAMODB_LOCAL,))


def install_missing() -> None:
    """Raises ToolError, after everything is installed that can be."""
    queues = [[program for program in queue if not program.directory.is_dir()] for queue in _QUEUES]
    check_tools([program for queue in queues for program in queue])
    emulators_directory().mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(len(queues)) as threads:
        errors = [error for error in threads.map(_install_all, queues) if error is not None]
    if errors:
        raise ToolError("\n\n".join(map(str, errors)))


def check_tools(programs: Sequence[Program]) -> None:
    """Raises ToolError that names all missing tools."""
    missing = [
        f"  {tool}: {description}, for {program.name}"
        for program in programs
        for tool, description in program.tools.items()
        if shutil.which(tool) is None
    ]
    if missing:
        raise ToolError("\n".join(["These programs are needed, and are not on the path:", *missing]))


def _install_all(programs: Sequence[Program]) -> ToolError | None:
    """One after the other, with the caches that their tools share."""
    with tempfile.TemporaryDirectory(prefix="pydelta-emulators-") as scratch:
        try:
            for program in programs:
                _install(program, Path(scratch))
        except ToolError as error:
            return error
    return None


def _install(program: Program, scratch: Path) -> None:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f".{program.name}-", dir=program.directory.parent) as unfinished:
        target = Path(unfinished) / "whole"
        target.mkdir()
        program.install(program, target, scratch)
        try:
            target.rename(program.directory)
        except OSError:
            if not program.directory.is_dir():  # otherwise another process was faster
                raise
    print(f"{program.name} {program.version}: installed in {time.monotonic() - begin:.0f} s", flush=True)


def main() -> int:
    try:
        install_missing()
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"emulators: {emulators_directory()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
