"""Files as a checkpoint holds them: what is wanted of them, and the columns in which they are given.

Checkpoints by any writer are taken: columns may be missing, strings large or dictionary-encoded, structs nullable or not.
Protocol: Checkpoint Schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import CorruptTableError, StorageError
from delta_py.log.commit_reader import DELETION_VECTOR_TYPE, FILE_SCHEMA, ONLY_FOR_COMMITS
from delta_py.log.stats_cache import KeptStats
from delta_py.statistics.stats import FileStats
from delta_py.statistics.stats_text import struct_to_json
from delta_py.types.schema import DataType, Path

_SHARED_NULLS = 65_536
_WHOLE_COLUMNS = ONLY_FOR_COMMITS - {"path_text"}  # which streams put files in order by


class CheckpointUnreadableError(CorruptTableError):
    """This checkpoint cannot be read; an older one, or the commits, may still give the state."""

    @classmethod
    def of(cls, path: str, why: object) -> CheckpointUnreadableError:
        return cls(
            f"The checkpoint file {path} cannot be read: {why}. If older checkpoints or all commits are there, move the file "
            "away and the state is rebuilt from them; otherwise restore it from a backup.",
            path=path,
        )


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """What pyarrow raises on a damaged file becomes CheckpointUnreadableError."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError, StorageError) as error:
        raise CheckpointUnreadableError.of(path, error) from error


@dataclass(frozen=True, slots=True)
class StatsWanted:
    """leaves: physical paths whose statistics are wanted, with their types. whole: whether statistics as JSON, tags and the
    clustering provider are, for a commit that names the file again. records: whether the numbers of records are, even if no
    leaf is."""

    leaves: Mapping[Path, DataType] = field(default_factory=dict)
    whole: bool = False
    records: bool = False


@dataclass(frozen=True, slots=True)
class RawFiles:
    """Files as a checkpoint holds them, before reconciliation.

    files: FILE_SCHEMA; stats, tags and clustering_provider null unless they were wanted whole. json, parsed: statistics aligned
    with files, each with the leaves that are to be taken from it; None where nothing is. known: statistics that were parsed
    before. kept: takes those that are parsed from the JSON now, in order; is_last: there are no more files in the same file of
    the checkpoint.
    """

    files: pa.RecordBatch
    json: pa.Array | None = None
    json_leaves: Mapping[Path, DataType] = field(default_factory=dict)
    parsed: pa.StructArray | None = None
    parsed_leaves: Mapping[Path, DataType] = field(default_factory=dict)
    known: FileStats | None = None
    kept: KeptStats | None = None
    is_last: bool = False


def raw_from_json(adds: pa.RecordBatch, wanted: StatsWanted) -> RawFiles:
    """Adds that carry their statistics as JSON (FILE_SCHEMA with stats) in the form of a checkpoint's."""
    json = adds["stats"] if wanted.leaves or wanted.records else None
    if not wanted.whole:
        for name in _WHOLE_COLUMNS:
            place, kind = adds.schema.get_field_index(name), FILE_SCHEMA.field(name).type
            adds = adds.set_column(place, name, pa.nulls(adds.num_rows, kind))
    return RawFiles(adds, json, wanted.leaves)


# ---------------------------------------------------------------- columns


def all_json(json: pa.Array | None, struct: pa.StructArray | None, count: int) -> pa.Array:
    """The statistics as text, made from the struct where there is no text."""
    text = pa.nulls(count, pa.string()) if json is None else json
    return text if struct is None or text.null_count == 0 else pc.coalesce(text, struct_to_json(struct))


def children(struct: pa.StructArray) -> dict[str, pa.Array]:
    """The fields by name, null where the struct is: a required field under a null struct holds arbitrary values."""
    return {f.name: child for f, child in zip(struct.type, struct.flatten(), strict=True)}


def as_text(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type == pa.string() else array.cast(pa.string())


def as_type(array: pa.Array | None, kind: pa.DataType, count: int) -> pa.Array:
    if array is None or array.null_count == count:
        return typed_nulls(count, kind)
    return array if array.type == kind else array.cast(kind)


def typed_nulls(count: int, kind: pa.DataType) -> pa.Array:
    """Most batches of most tables have columns without a value: they share the memory of one, as a plan may hold all batches."""
    is_shared = count <= _SHARED_NULLS and kind in FILE_SCHEMA.types
    return _shared_nulls(kind).slice(0, count) if is_shared else pa.nulls(count, kind)


@cache
def _shared_nulls(kind: pa.DataType) -> pa.Array:
    return pa.nulls(_SHARED_NULLS, kind)


def deletion_vectors(vectors: pa.StructArray | None, count: int) -> pa.Array:
    if vectors is None:
        return typed_nulls(count, DELETION_VECTOR_TYPE)
    given = children(vectors) if pa.types.is_struct(vectors.type) else {}
    for name in ("storageType", "pathOrInlineDv"):
        if name not in given:
            raise pa.ArrowInvalid(f"add.deletionVector has no field {name}")
    missing = given["storageType"].is_null()
    if missing.true_count == count:
        return typed_nulls(count, DELETION_VECTOR_TYPE)
    fields = [
        as_text(given[f.name]) if f.type == pa.string() else as_type(given.get(f.name), f.type, count)
        for f in DELETION_VECTOR_TYPE
    ]
    return pa.StructArray.from_arrays(fields, fields=list(DELETION_VECTOR_TYPE), mask=missing)
