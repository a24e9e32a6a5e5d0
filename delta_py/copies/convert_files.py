"""The files of a directory that becomes a table or is cloned as one, and the partition values in the names of their directories.

    files = find_files(store)                                       # LISTED_SCHEMA, by path; None if a table already exists
    values = partition_values(files, StructType(...), "UTC")        # the texts for the log: one column per partition column

In the output of a stream, only the files that the stream has committed count. Names that begin with `_` or `.` are no data,
except partition directories. Texts of values are converted to the form that writers use, so that readers which parse more
strictly than Spark accept them too.
Protocol: Partition Value Serialization; Data Files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.copies.stream_output import STREAM_LOG, committed_files
from delta_py.errors import DataFileError, InvalidOptionError, TableNotFoundError, UnsupportedOperationError, shown
from delta_py.parquet.foreign_files import LISTED_SCHEMA
from delta_py.protocol.partition_values import find_malformed, format_partition_values, parse_partition_values
from delta_py.protocol.paths import LOG_DIRECTORY, partition_texts_of
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.types.schema import STRING, StructField, StructType, type_name


def find_files(store: ObjectStore) -> pa.Table | None:
    """The data files below the store's root, LISTED_SCHEMA by path; None if a table already exists.

    Raises TableNotFoundError (DELTA_EMPTY_DIRECTORY) for a directory that is missing or has no files; UnsupportedOperationError
    for a directory whose files are not all rows of one table, because a table or the output of a stream lies below it;
    DataFileError if files that a stream committed to the directory are missing.
    """
    try:
        Snapshot.load(store)
        return None
    except TableNotFoundError:
        pass
    stream_paths = committed_files(store)
    files: list[ObjectInfo] = []
    for info in store.list_recursive(""):
        _check_belongs_to_directory(store, info.path)
        if not _is_hidden(info.path) and (stream_paths is None or info.path in stream_paths):
            files.append(info)
    missing_paths = sorted((stream_paths or frozenset()) - {info.path for info in files})
    if missing_paths:
        raise DataFileError(
            f"A stream of Spark has committed {len(missing_paths)} files to the directory {store.root} that are not there, such "
            f"as {missing_paths[0]}. Nothing was changed. Restore them; or, if the files that are there are all, move "
            f"{STREAM_LOG} elsewhere.",
            files=missing_paths[:10],
        )
    if not files:
        raise TableNotFoundError(
            f"No file was found in the directory {store.root}, or there is no such directory. Nothing was changed. Check the "
            "path.",
            error_class="DELTA_EMPTY_DIRECTORY",
            sql_state="42K03",
            path=store.root,
        )
    columns = [[f.path for f in files], [f.size_bytes for f in files], [f.modification_time_ms for f in files]]
    try:
        arrays = [pa.array(column, f.type) for column, f in zip(columns, LISTED_SCHEMA, strict=True)]
    except UnicodeEncodeError as error:
        raise UnsupportedOperationError(
            f"A file below {store.root} has the name {shown(error.object)}, which is no text, so no log can name it. Nothing was "
            "changed. Rename it."
        ) from error
    return pa.Table.from_arrays(arrays, schema=LISTED_SCHEMA).sort_by("path")


def _is_hidden(path: str) -> bool:
    """Whether a file is no data: its name, or that of a directory that is no partition (`day=...`), begins with `_` or `.`."""
    *directories, name = path.split("/")
    return name.startswith(("_", ".")) or any(
        directory.startswith(("_", ".")) and "=" not in directory for directory in directories
    )


def _check_belongs_to_directory(store: ObjectStore, path: str) -> None:
    """Raises UnsupportedOperationError if the path shows that a table or the output of a stream lies below the root: then not all
    files are rows of one table."""
    directory, separator, _ = path.rpartition(f"/{LOG_DIRECTORY}/")
    if separator:
        raise UnsupportedOperationError(
            f"{directory} below {store.root} is a Delta table of its own: some of its files are rows no longer, and its log "
            "alone tells which. Nothing was changed. Move it elsewhere, or take a directory without it.",
            path=directory,
        )
    if f"/{STREAM_LOG}/" in path:
        raise UnsupportedOperationError(
            f"A stream of Spark has written to a directory below {store.root} ({path}): files of batches that failed lie among "
            "those that count. Nothing was changed. Take that directory alone, or move it elsewhere.",
            path=path,
        )


# ---------------------------------------------------------------- partition values


def partition_values(files: pa.Table, partitions: StructType, time_zone: str) -> pa.Table:
    """The partition values of files as texts for the log: a row for each file, and a column for each partition column.

    files: LISTED_SCHEMA. partitions: the partition columns in their order. time_zone: of timestamps without an offset.

    Raises InvalidOptionError by delta-spark's names, each with a file: directories that do not match the partition columns, by
    number (DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME) or name (DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME); a
    value that its column's type cannot represent (DELTA_FAILED_CAST_PARTITION_VALUE).
    """
    # Each directory is parsed once, however many files it has.
    directories = pc.replace_substring_regex(files["path"], "[^/]*$", "").combine_chunks().dictionary_encode()
    texts_by_directory = [
        _partition_texts(directory, files, partitions.fields) for directory in directories.dictionary.to_pylist()
    ]
    columns = []
    for index, f in enumerate(partitions.fields):
        directory_texts = pa.array([row[index] for row in texts_by_directory], pa.string())
        columns.append(_texts_for_log(directory_texts, f, time_zone).take(directories.indices))
    return pa.table(dict(zip(partitions.names, columns, strict=True)))


def _partition_texts(directory: str, files: pa.Table, fields: Sequence[StructField]) -> list[str | None]:
    """The texts of the partition values in a directory's name, one for each field; None for null. files: all files, to name one
    of the directory in an error. Raises as partition_values.
    """
    partition_texts = partition_texts_of(directory)
    expected, names = [f.name for f in fields], [name for name, _ in partition_texts]
    if len(partition_texts) != len(fields):
        raise InvalidOptionError(
            f"Expecting {len(fields)} partition column(s): {_names_text(expected)}, but found {len(partition_texts)} partition "
            f"column(s): {_names_text(names)} from parsing the file name: {_file_in(files, directory)}. Nothing was changed. "
            "Give the partition schema of the directories, such as "
            f"'{', '.join(f'{name} string' for name in names) or 'day date'}'.",
            error_class="DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
            sql_state="KD009",
            expected=expected,
            found=names,
        )
    for expected_name, (name, text) in zip(expected, partition_texts, strict=True):
        if expected_name.lower() != name.lower():
            raise InvalidOptionError(
                f"Expecting partition column `{expected_name}`, but found partition column `{name}` from parsing the file name: "
                f"{_file_in(files, directory)}. Nothing was changed. Give the partition columns in the order of the directories.",
                error_class="DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
                sql_state="KD009",
                expected=expected_name,
                found=name,
            )
        if text == "":
            raise InvalidOptionError(
                f"The directory of the file {_file_in(files, directory)} has no value for partition column `{name}`. Nothing was "
                "changed. Rename it: null is __HIVE_DEFAULT_PARTITION__.",
                column=name,
            )
    return [text for _, text in partition_texts]


def _texts_for_log(texts: pa.Array, f: StructField, time_zone: str) -> pa.Array:
    """The partition values of a column in the form of the log, from the texts in directories' names. Raises InvalidOptionError
    for a text that the type cannot represent."""
    if f.data_type == STRING:
        return texts
    values = parse_partition_values(texts, f.data_type, timezone=time_zone, errors="null")
    invalid = texts.filter(find_malformed(texts, values))
    if len(invalid):
        raise InvalidOptionError(
            f"Failed to cast partition value `{invalid[0].as_py()}` to {type_name(f.data_type)}, the type of partition column "
            f"`{f.name}`. Nothing was changed. Give the column another type, such as string, or rename the directory.",
            error_class="DELTA_FAILED_CAST_PARTITION_VALUE",
            sql_state="22018",
            column=f.name,
            value=invalid[0].as_py(),
        )
    return pa.array(format_partition_values(values, f.data_type), pa.string())


def _file_in(files: pa.Table, directory: str) -> str:
    """The path of a file in the directory, for messages."""
    paths = files["path"]
    return str(
        next(path for path in paths.filter(pc.starts_with(paths, directory)).to_pylist() if _directory_of(path) == directory)
    )


def _directory_of(path: str) -> str:
    """The directory of a file, with a slash at its end; an empty text for the root."""
    head, slash, _ = path.rpartition("/")
    return head + slash


def _names_text(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"
