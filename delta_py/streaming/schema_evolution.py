"""Which changes of a table's columns a stream accepts: the user must allow renamed, dropped and retyped columns.

    changes = column_changes(older, newer)          # SchemaMismatchError for changes that no stream can accept
    check_allowed(changes, allowed, ...)            # SchemaMismatchError: what to set to continue

Columns are identified by their physical names: without column mapping a missing column was dropped.
Protocol: Column Mapping; Type Widening.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from delta_py.changes.schema_changes import is_wider
from delta_py.errors import SchemaMismatchError
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import Metadata
from delta_py.types.schema import VOID, ArrayType, DataType, MapType, Path, StructType, parse_schema, type_name

ALLOW_CONFS = "spark.databricks.delta.streaming.allowSourceColumn"
_ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """The changes of columns between two schemas, other than added columns. Columns have their logical names, with dots. renamed:
    (old, new). widened: (column, old type, new type)."""

    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    widened: tuple[tuple[str, str, str], ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of changes that occur, by the ends of the options' names, such as allowSourceColumnRename: Rename, Drop or
        TypeChange."""
        columns_by_kind = (("Rename", self.renamed), ("Drop", self.dropped), ("TypeChange", self.widened))
        return tuple(kind for kind, columns in columns_by_kind if columns)

    @property
    def details(self) -> str:
        """All changes in words, for errors."""
        lines = [f"{old} was renamed to {new}" for old, new in self.renamed]
        lines += [f"{name} was dropped" for name in self.dropped]
        return "; ".join(lines + [f"{name} was {old} and became {new}" for name, old, new in self.widened])


@dataclass(frozen=True, slots=True)
class Allowed:
    """Changes that the user allows. options: Rename, Drop, TypeChange -> `always`, or the version with the change. confs:
    settings of the session whose names begin with ALLOW_CONFS."""

    options: Mapping[str, str] = field(default_factory=dict)
    confs: Mapping[str, str] = field(default_factory=dict)

    def allows(self, kind: str, version: int, checkpoint_hash: int) -> bool:
        """Whether the user allows a kind of change. kind: Rename, Drop or TypeChange. version: with the change. checkpoint_hash:
        as in check_allowed. The setting RenameAndDrop allows Rename and Drop."""
        if self.options.get(kind, "").lower() in (_ALWAYS, str(version)):
            return True
        names = [kind] if kind == "TypeChange" else [kind, "RenameAndDrop"]
        for name in (ALLOW_CONFS + name for name in names):
            allowed_for_stream = self.confs.get(f"{name}.ckpt_{checkpoint_hash}", "").lower()
            if self.confs.get(name, "").lower() == _ALWAYS or allowed_for_stream in (_ALWAYS, str(version)):
                return True
        return False


def column_changes(older: Metadata, newer: Metadata, version: int) -> ColumnChanges:
    """The changes from the older to the newer metadata, other than added columns. version: of the newer metadata, for errors.

    Raises SchemaMismatchError (DELTA_SCHEMA_CHANGED_WITH_VERSION) for a type that was not widened, and for a column
    that became NOT NULL.
    """
    old_columns, new_columns = _columns(older), _columns(newer)
    common = [(column, new_columns[path]) for path, column in old_columns.items() if path in new_columns]
    for old, new in common:
        if (old.nullable and not new.nullable) or not _is_readable(old.data_type, new.data_type):
            raise SchemaMismatchError(
                f"Version {version} changed the column {old.name} from {_type_text(old)} to {_type_text(new)}. Rows from before "
                "cannot be read so: start again with a new checkpoint, with startingVersion set to the version of the change.",
                error_class="DELTA_SCHEMA_CHANGED_WITH_VERSION",
                sql_state="KD007",
                version=version,
                column=old.name,
            )
    dropped = [path for path in old_columns if path not in new_columns]
    # The fields of a dropped column are dropped with it, and not reported.
    return ColumnChanges(
        renamed=tuple((old.name, new.name) for old, new in common if old.path[-1] != new.path[-1]),
        dropped=tuple(old_columns[path].name for path in dropped if old_columns[path].is_named and path[:-1] not in dropped),
        widened=tuple(
            (new.name, type_name(old.data_type), type_name(new.data_type)) for old, new in common if _is_leaf_changed(old, new)
        ),
    )


def check_allowed(changes: ColumnChanges, allowed: Allowed, previous: int, version: int, checkpoint_hash: int) -> None:
    """Check that the user allows the changes. previous, version: of the table, before and after them. checkpoint_hash: identifies
    this stream in the settings.

    Raises SchemaMismatchError (DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION).
    """
    blocked_kinds = [kind for kind in changes.kinds if not allowed.allows(kind, version, checkpoint_hash)]
    if not blocked_kinds:
        return
    options = " and ".join(f'.option("allowSourceColumn{kind}", "{version}")' for kind in blocked_kinds)
    confs = " and ".join(f"{ALLOW_CONFS}{kind}.ckpt_{checkpoint_hash} = {version}" for kind in blocked_kinds)
    everywhere = " and ".join(f"{ALLOW_CONFS}{kind} = {_ALWAYS}" for kind in blocked_kinds)
    raise SchemaMismatchError(
        f"Between the versions {previous} and {version} of the stream's table more happened than that columns were added: "
        f"{changes.details}. Change the table that the stream writes to, if it shall follow, and allow the stream to go on: for "
        f"this change by {options} on the stream's reader, or by the setting {confs}; for all changes of this kind with "
        f"{_ALWAYS!r} in the place of {version}; for all streams by {everywhere}.",
        error_class="DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
        sql_state="KD002",
        changes=changes.details,
        previous_version=previous,
        version=version,
        blocked=tuple(blocked_kinds),
    )


def java_hash(text: str) -> int:
    """The result of Java's String.hashCode. delta-spark identifies a stream in settings by this hash of its path."""
    units = text.encode("utf-16-be")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[position : position + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


# ---------------------------------------------------------------- columns


@dataclass(frozen=True, slots=True)
class _Column:
    """A column, or a part of one, in a schema. path: of logical names. is_named: a field of a struct; elements, keys and values
    have no names of their own."""

    path: Path
    data_type: DataType
    nullable: bool
    is_named: bool

    @property
    def name(self) -> str:
        return ".".join(self.path)


def _columns(metadata: Metadata) -> dict[Path, _Column]:
    """Every field at any depth, with its elements, keys and values, by physical path."""
    return dict(_walk(parse_schema(metadata.schema_string), column_mapping.mode(metadata.configuration), (), ()))


def _walk(data_type: DataType, mode: str, physical: Path, logical: Path) -> Iterator[tuple[Path, _Column]]:
    """The columns and nested fields below a type, each with its physical path. mode: of column mapping. physical, logical: the
    paths of the type itself."""
    # (physical name, logical name, type, nullable, is_named) of each part of the type.
    inner: list[tuple[str, str, DataType, bool, bool]] = []
    match data_type:
        case StructType(fields):
            inner = [(column_mapping.physical_name(f, mode), f.name, f.data_type, f.nullable, True) for f in fields]
        case ArrayType(element, contains_null):
            inner = [("element", "element", element, contains_null, False)]
        case MapType(key, value, contains_null):
            inner = [("key", "key", key, False, False), ("value", "value", value, contains_null, False)]
    for physical_name, name, inner_type, nullable, is_named in inner:
        below, path = (*physical, physical_name), (*logical, name)
        yield below, _Column(path, inner_type, nullable, is_named)
        yield from _walk(inner_type, mode, below, path)


def _is_nested(data_type: DataType) -> bool:
    return isinstance(data_type, StructType | ArrayType | MapType)


def _is_readable(old_type: DataType, new_type: DataType) -> bool:
    """Whether rows with the old type can be read with the new one. Of two nested types, only the kind is compared here: the
    fields and elements inside them are columns of their own (_columns)."""
    if old_type == VOID:  # no file has values of type void
        return True
    if _is_nested(old_type) or _is_nested(new_type):
        return type(old_type) is type(new_type)
    return old_type == new_type or is_wider(old_type, new_type)


def _is_leaf_changed(old: _Column, new: _Column) -> bool:
    """Whether the column has a simple type that changed. No file has values of type void, so that type does not count."""
    return not _is_nested(old.data_type) and old.data_type not in (new.data_type, VOID)


def _type_text(column: _Column) -> str:
    return type_name(column.data_type) + ("" if column.nullable else " NOT NULL")
