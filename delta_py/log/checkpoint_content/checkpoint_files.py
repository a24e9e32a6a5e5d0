"""Files as a checkpoint holds them: which statistics a reader requests, and the columns that it gets.

Checkpoints of any writer are accepted: columns may be missing, strings may be large or dictionary-encoded, structs may be
nullable or not.
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
from delta_py.log.checkpoint_content.stats_cache import CachedStats
from delta_py.log.commit_reader import DELETION_VECTOR_TYPE, FILE_SCHEMA, ONLY_FOR_COMMITS
from delta_py.statistics.stats import FileStats
from delta_py.statistics.stats_text import struct_to_json
from delta_py.types.schema import DataType, Path

_SHARED_NULLS = 65_536  # the number of rows up to which columns of nulls share memory: a batch of a checkpoint has as many
# The columns that are null unless a commit needs the files. path_text is not one of them, because streams sort files by it.
_WHOLE_COLUMNS = ONLY_FOR_COMMITS - {"path_text"}


class CheckpointUnreadableError(CorruptTableError):
    """This checkpoint cannot be read. The state may still be rebuilt from an older checkpoint or from the commits."""

    @classmethod
    def of(cls, path: str, why: object) -> CheckpointUnreadableError:
        """The error for a checkpoint file. why: the rest of a sentence that begins with "cannot be read: "."""
        return cls(
            f"The checkpoint file {path} cannot be read: {why}. If older checkpoints or all commits exist, move the file away, "
            "and the state is rebuilt from them. Otherwise restore the file from a backup.",
            path=path,
        )


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """Convert the errors that pyarrow raises for a damaged file to CheckpointUnreadableError."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError, StorageError) as error:
        raise CheckpointUnreadableError.of(path, error) from error


@dataclass(frozen=True, slots=True)
class RequestedStats:
    """Which statistics a reader requests. leaves: physical paths of the requested columns, with their types. whole: whether the
    JSON statistics, tags and clustering provider are requested, for a commit that names the file again. records: whether the
    record counts are requested even if no leaf is."""

    leaves: Mapping[Path, DataType] = field(default_factory=dict)
    whole: bool = False
    records: bool = False


@dataclass(frozen=True, slots=True)
class RawFiles:
    """A batch of files as a checkpoint holds them, before reconciliation with newer actions.

    files: FILE_SCHEMA; stats, tags and clustering_provider are null unless `whole` was requested.
    json, parsed: the statistics of the files, as JSON texts and as structs (stats_parsed); None if they are not needed.
    json_leaves, parsed_leaves: the leaves to read from each of them.
    cached_stats: statistics that the cache already holds.
    cache_entry: stores the statistics that are parsed from the JSON now, in order.
    is_last: the same checkpoint file holds no more files after these.
    """

    files: pa.RecordBatch
    json: pa.Array | None = None
    json_leaves: Mapping[Path, DataType] = field(default_factory=dict)
    parsed: pa.StructArray | None = None
    parsed_leaves: Mapping[Path, DataType] = field(default_factory=dict)
    cached_stats: FileStats | None = None
    cache_entry: CachedStats | None = None
    is_last: bool = False


def raw_from_json(adds: pa.RecordBatch, requested_stats: RequestedStats) -> RawFiles:
    """Convert adds with JSON statistics (FILE_SCHEMA with stats) to the form of a checkpoint's files. Columns that only commits
    need become null unless they were requested (`whole`)."""
    json = adds["stats"] if requested_stats.leaves or requested_stats.records else None
    if not requested_stats.whole:
        for name in _WHOLE_COLUMNS:
            place, kind = adds.schema.get_field_index(name), FILE_SCHEMA.field(name).type
            adds = adds.set_column(place, name, pa.nulls(adds.num_rows, kind))
    return RawFiles(files=adds, json=json, json_leaves=requested_stats.leaves)


# ---------------------------------------------------------------- columns


def all_json(json: pa.Array | None, struct: pa.StructArray | None, count: int) -> pa.Array:
    """The statistics as JSON texts. Where there is no text, it is built from the struct. json, struct: None if the checkpoint has
    no such column. count: the number of rows."""
    text = pa.nulls(count, pa.string()) if json is None else json
    return text if struct is None or text.null_count == 0 else pc.coalesce(text, struct_to_json(struct))


def children(struct: pa.StructArray) -> dict[str, pa.Array]:
    """The fields of a struct column by name, as columns that are null where the struct is null. Without that, a required field
    holds arbitrary values in rows whose struct is null."""
    return {f.name: child for f, child in zip(struct.type, struct.flatten(), strict=True)}


def as_text(array: pa.Array) -> pa.Array:
    """A column of texts as plain strings. Other writers' columns may be dictionaries or large strings."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type == pa.string() else array.cast(pa.string())


def as_type(array: pa.Array | None, kind: pa.DataType, count: int) -> pa.Array:
    """A column as the Arrow type `kind`; nulls for `count` rows if the checkpoint does not have the column (None)."""
    if array is None or array.null_count == count:
        return typed_nulls(count, kind)
    return array if array.type == kind else array.cast(kind)


def typed_nulls(count: int, kind: pa.DataType) -> pa.Array:
    """A column of nulls. Most batches of most tables have such columns, and a plan may hold all batches, so they share memory."""
    is_shared = count <= _SHARED_NULLS and kind in FILE_SCHEMA.types
    return _shared_nulls(kind).slice(0, count) if is_shared else pa.nulls(count, kind)


@cache
def _shared_nulls(kind: pa.DataType) -> pa.Array:
    return pa.nulls(_SHARED_NULLS, kind)


def deletion_vectors(vectors: pa.StructArray | None, count: int) -> pa.Array:
    """The column deletionVector of a checkpoint as DELETION_VECTOR_TYPE. vectors: None if the checkpoint has no such column.

    A row whose storageType is null has no vector: some writers store a struct of nulls instead of a null. Raises pa.ArrowInvalid
    if a required field is missing.
    """
    if vectors is None:
        return typed_nulls(count, DELETION_VECTOR_TYPE)
    fields_by_name = children(vectors) if pa.types.is_struct(vectors.type) else {}
    for name in ("storageType", "pathOrInlineDv"):
        if name not in fields_by_name:
            raise pa.ArrowInvalid(f"add.deletionVector has no field {name}")
    missing = fields_by_name["storageType"].is_null()
    if missing.true_count == count:
        return typed_nulls(count, DELETION_VECTOR_TYPE)
    fields = [
        as_text(fields_by_name[f.name]) if f.type == pa.string() else as_type(fields_by_name.get(f.name), f.type, count)
        for f in DELETION_VECTOR_TYPE
    ]
    return pa.StructArray.from_arrays(fields, fields=list(DELETION_VECTOR_TYPE), mask=missing)
