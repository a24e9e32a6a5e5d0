"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from delta_py.release import DISTRIBUTION

Path = Annotated[str, typer.Argument(metavar="PATH", help="A table's directory or URL; PATH@v12 names a version too.")]
Place = Annotated[str, typer.Argument(metavar="PATH", help="A table's directory or URL.")]
Version = Annotated[int | None, typer.Option("--version", metavar="N", help="Read this version.")]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help="Read the newest version committed at or before this time.")]
Filter = Annotated[str | None, typer.Option("--filter", metavar="SQL", help="Only rows for which this is true.")]
Columns = Annotated[str | None, typer.Option("--columns", metavar="NAMES", help="Only these columns, with commas between them.")]
VerifyChecksums = Annotated[
    bool, typer.Option("--verify-checksums", help="Compare each page that is read with its checksum; a damaged one is an error.")
]
Where = Annotated[
    str | None, typer.Option("--where", metavar="SQL", help="Only these partitions: a condition on partition columns.")
]
Spark = Annotated[bool, typer.Option("--spark", help=f"Let Spark do the work (needs {DISTRIBUTION}[spark]).")]
Properties = Annotated[
    list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="A table property; may be repeated.")
]


def check_one_version(version: int | None, at: str | None) -> None:
    if version is not None and at is not None:
        raise typer.BadParameter("say either --version or --at, not both.", param_hint="--version")


def columns_of(text: str | None) -> list[str] | None:
    """`a, `b,c`` -> names of columns, without backticks."""
    from delta_py.types.names import split_list, unquoted

    return None if text is None else [unquoted(name) for name in split_list(text)]


def pairs_of(texts: Sequence[str] | None, hint: str) -> dict[str, str]:
    """`KEY=VALUE` -> a mapping. hint: the option or argument, for the error about a text without `=`."""
    for text in texts or ():
        if "=" not in text:
            raise typer.BadParameter(f"{text!r} is no KEY=VALUE", param_hint=hint)
    return dict(text.partition("=")[::2] for text in texts or ())


def store_options_of(texts: Sequence[str] | None) -> dict[str, str]:
    """As pairs_of, for --option. Its texts may contain secrets, so no error shows them."""
    for number, text in enumerate(texts or (), 1):
        if "=" not in text:
            raise typer.BadParameter(f"number {number} is no KEY=VALUE", param_hint="--option")
    return pairs_of(texts, "--option")
