"""The index definitions in the log: one metadata domain of pydelta per index.

    definitions = definitions_of(snapshot.domain_metadata())      # those that this version understands, and names of the others
    transaction.set_domain(definition.as_domain())

The domain `pydelta.index.<name>` holds the indexed column by its physical path, the kind and hash of its values, and the
segments: Parquet files below `_pydelta_index/`, a directory that engines and VACUUM skip. Other clients keep the domain
unchanged.
Protocol: Domain Metadata.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

import orjson

from delta_py.index.hashing import HASH
from delta_py.protocol.actions import DomainMetadata
from delta_py.types.schema import Path

DIRECTORY = "_pydelta_index"
PREFIX = "pydelta.index."
FORMAT = 1  # of the domain and of segments; an index of another format is not used
match_name = re.compile(r"[A-Za-z0-9_]{1,100}").fullmatch


class UnknownIndexError(ValueError):
    """A domain that this version cannot read: its format is newer, or it is damaged."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The entry in the log for a segment, which is a file of an index. path: below the table's root. rows: the number of its
    (hash, data file) pairs. files: the number of data files that it covers. bytes: its size."""

    path: str
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index as the log records it. column: the physical path of the indexed column. kind: the kind of the column's values,
    from hashing.value_kind."""

    name: str
    column: Path
    kind: str
    segments: tuple[Segment, ...] = ()

    @property
    def domain(self) -> str:
        return PREFIX + self.name

    @property
    def directory(self) -> str:
        return f"{DIRECTORY}/{self.name}"

    def with_segments(self, segments: tuple[Segment, ...]) -> Self:
        return replace(self, segments=segments)

    def as_domain(self, *, removed: bool = False) -> DomainMetadata:
        """The action that records the index in the log; if `removed`, the one that removes it."""
        fields = {"format": FORMAT, "column": self.column, "kind": self.kind, "hash": HASH}
        text = orjson.dumps({**fields, "segments": [asdict(segment) for segment in self.segments]}).decode()
        return DomainMetadata(self.domain, text, removed)

    @classmethod
    def of(cls, domain: DomainMetadata) -> Self:
        """The index in a metadata domain. Raises UnknownIndexError for a domain that this version cannot read."""
        name = domain.domain.removeprefix(PREFIX)
        try:
            value = orjson.loads(domain.configuration)
            if (value["format"], value["hash"]) != (FORMAT, HASH):
                raise UnknownIndexError(f"its format is {value['format']!r}, with hashes {value['hash']!r}")
            segments = tuple(_parse_segment(**part) for part in value["segments"])
            column, kind = tuple(value["column"]), value["kind"]
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise UnknownIndexError("it is damaged") from error
        if not match_name(name) or not column or not all(isinstance(part, str) for part in (*column, kind)):
            raise UnknownIndexError("it is damaged")
        if not all(segment.path.startswith(f"{DIRECTORY}/") and ".." not in segment.path for segment in segments):
            raise UnknownIndexError("its segments do not lie where segments lie")
        return cls(name, column, kind, segments)


def _parse_segment(*, path: str, rows: int, files: int, bytes: int) -> Segment:
    """A segment from the JSON of the domain. Raises TypeError for values of wrong types."""
    numbers = (rows, files, bytes)
    if type(path) is not str or not all(type(number) is int and number >= 0 for number in numbers):
        raise TypeError("no segment")
    return Segment(path, rows, files, bytes)


def definitions_of(domains: Mapping[str, DomainMetadata]) -> tuple[list[IndexDefinition], dict[str, str]]:
    """The indexes in the order of their names; and for each index that this version does not understand, the reason by its name.
    domains: all metadata domains of a version."""
    definitions: list[IndexDefinition] = []
    unknown: dict[str, str] = {}
    for name in sorted(name for name in domains if name.startswith(PREFIX)):
        try:
            definitions.append(IndexDefinition.of(domains[name]))
        except UnknownIndexError as error:
            unknown[name.removeprefix(PREFIX)] = str(error)
    return definitions, unknown
