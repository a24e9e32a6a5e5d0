"""A table's schema: its types, their JSON, and the Arrow types that rows have in memory.

In: the `schemaString` of a metaData action. Out: frozen values. Names and their order are those of the schema. Name lookups in
Spark are case-insensitive, so `StructType.find` is too.
Protocol: Schema Serialization Format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from delta_py.errors import CorruptTableError, SchemaMismatchError, UnsupportedOperationError
from delta_py.types.arrow_layouts import plain_type
from delta_py.types.json_text import parse_json, write_json
from delta_py.types.names import split_name

MOST_DIGITS = 38  # of a decimal


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parameters, by its name in the schema JSON (`long`, `timestamp_ntz`, `void`, `variant`, ...)."""

    name: str


@dataclass(frozen=True, slots=True)
class DecimalType:
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class GeospatialType:
    """`geometry` or `geography`: shapes as WKB in one coordinate reference system.

    kind: `geometry` or `geography`. crs: as in the schema, such as OGC:CRS84 or EPSG:3857. algorithm: how edges run between
    points, in lower case; None for geometry. text: the type's name in the schema's JSON; two spellings of one type are equal.
    """

    kind: str
    crs: str
    algorithm: str | None
    text: str = field(compare=False)

    @property
    def srid(self) -> int | None:
        """The number of the CRS, which Spark stores with each value; None if the CRS has no number."""
        number = self.crs.partition(":")[2]
        return _DEFAULT_CRS_SRID if self.crs == DEFAULT_CRS else int(number) if number.isdecimal() else None


@dataclass(frozen=True, slots=True)
class ArrayType:
    element_type: DataType
    contains_null: bool = True


@dataclass(frozen=True, slots=True)
class MapType:
    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True


@dataclass(frozen=True, slots=True)
class StructField:
    name: str
    data_type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StructType:
    fields: tuple[StructField, ...] = ()
    # Built by the first lookup by name. A table may have thousands of columns, and each of them is looked up.
    _positions: FieldPositions | None = field(default=None, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[StructType], tuple[tuple[StructField, ...]]]:
        # Pickled without the positions.
        return StructType, (self.fields,)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    def find(self, name: str) -> StructField | None:
        """The field of this name, exact match first, then ignoring case; None if there is none."""
        position = self.position(name)
        return None if position is None else self.fields[position]

    def position(self, name: str) -> int | None:
        """The position of the field that `find` returns."""
        positions = self._positions
        if positions is None:
            positions = FieldPositions.of(f.name for f in self.fields)
            object.__setattr__(self, "_positions", positions)
        return positions.find(name)


@dataclass(frozen=True, slots=True)
class FieldPositions:
    """The position of the first field of each name. folded: by the name in lower case."""

    exact: Mapping[str, int]
    folded: Mapping[str, int]

    @classmethod
    def of(cls, names: Iterable[str]) -> FieldPositions:
        """names: of the fields, in order. If a name occurs twice, the first field counts."""
        exact: dict[str, int] = {}
        folded: dict[str, int] = {}
        for position, name in enumerate(names):
            exact.setdefault(name, position)
            folded.setdefault(name.lower(), position)
        return cls(exact, folded)

    def find(self, name: str) -> int | None:
        """The position of a name: an exact match first, then ignoring case; None if there is none."""
        position = self.exact.get(name)
        return self.folded.get(name.lower()) if position is None else position


DataType: TypeAlias = PrimitiveType | DecimalType | GeospatialType | ArrayType | MapType | StructType

STRING = PrimitiveType("string")
LONG = PrimitiveType("long")
INTEGER = PrimitiveType("integer")
SHORT = PrimitiveType("short")
BYTE = PrimitiveType("byte")
FLOAT = PrimitiveType("float")
DOUBLE = PrimitiveType("double")
BOOLEAN = PrimitiveType("boolean")
BINARY = PrimitiveType("binary")
DATE = PrimitiveType("date")
TIMESTAMP = PrimitiveType("timestamp")
TIMESTAMP_NTZ = PrimitiveType("timestamp_ntz")
VOID = PrimitiveType("void")
VARIANT = PrimitiveType("variant")

DEFAULT_CRS = "OGC:CRS84"
ANY_CRS = "SRID:ANY"  # each value has its own CRS, which files cannot store
_DEFAULT_CRS_SRID = 4326
_DEFAULT_ALGORITHM = "spherical"
_CRS = re.compile(r"\w+:[^\s(),]+")

VARIANT_ARROW = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)

_ARROW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    "variant": VARIANT_ARROW,
}


def is_known_type(data_type: DataType) -> bool:
    """Whether this library supports a type. The types inside it are not checked."""
    return not isinstance(data_type, PrimitiveType) or data_type.name in _ARROW_TYPES


# ---------------------------------------------------------------- JSON


def parse_schema(text: str | bytes) -> StructType:
    """Schema JSON -> StructType. Raises CorruptTableError if the text is not a struct schema, or is nested too deeply."""
    try:
        parsed = _type_from_json(parse_json(text))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptTableError(f"The table's schema cannot be parsed: {error}. The metaData action is damaged.") from error
    if not isinstance(parsed, StructType):
        raise CorruptTableError("The table's schema is not a struct. The metaData action is damaged.")
    return parsed


def schema_to_json(schema: StructType) -> str:
    """StructType -> schema JSON. Raises UnsupportedOperationError for a schema that parse_schema would refuse."""
    try:
        return write_json(_type_to_json(schema))
    except (ValueError, RecursionError) as error:
        raise UnsupportedOperationError(
            f"The schema cannot be written: {error}. Nothing was written. Use columns that are nested less deeply, and plain "
            "text in names and comments."
        ) from error


def _type_from_json(value: Any) -> DataType:
    """The type in parsed schema JSON. Raises ValueError, KeyError, TypeError or AttributeError for anything else."""
    if isinstance(value, str):
        return primitive_from_name(value)
    match value["type"]:
        case "struct":
            return StructType(tuple(_field_from_json(f) for f in value["fields"]))
        case "array":
            return ArrayType(_type_from_json(value["elementType"]), bool(value["containsNull"]))
        case "map":
            key, item = _type_from_json(value["keyType"]), _type_from_json(value["valueType"])
            return MapType(key, item, bool(value["valueContainsNull"]))
        case unknown_type:
            raise ValueError(f"unknown type {unknown_type!r}")


def _field_from_json(value: Any) -> StructField:
    name = value["name"]
    if not isinstance(name, str):
        raise ValueError(f"a field's name must be a string, not {name!r}")
    return StructField(name, _type_from_json(value["type"]), bool(value.get("nullable", True)), dict(value.get("metadata") or {}))


def primitive_from_name(name: str) -> DataType:
    """The type of a name in the schema JSON. An unknown name is kept unchanged; reading its column is refused later."""
    if name == "decimal":
        return DecimalType(10, 0)
    if name.startswith("decimal(") and name.endswith(")"):
        precision, scale = (int(part) for part in name[8:-1].split(","))
        if not (0 < precision <= MOST_DIGITS and 0 <= scale <= precision):
            raise ValueError(f"decimal({precision},{scale}) is out of range")
        return DecimalType(precision, scale)
    return _parse_geospatial(name) or PrimitiveType("void" if name == "null" else name)


def _parse_geospatial(name: str) -> GeospatialType | None:
    """Parse a geospatial type; None if the name is not that of a valid one. CRS and algorithm may be left out, as in Spark."""
    if name in ("geometry", "geography"):
        kind, arguments = name, []
    elif name.startswith(("geometry(", "geography(")) and name.endswith(")"):
        kind, _, inside = name[:-1].partition("(")
        arguments = [part.strip() for part in inside.split(",")]
    else:
        return None
    # Only a CRS contains a colon: `geography(spherical)` has an algorithm alone.
    crs = arguments.pop(0) if arguments and ":" in arguments[0] else DEFAULT_CRS
    algorithm = arguments.pop(0).lower() if arguments and kind == "geography" else _DEFAULT_ALGORITHM
    # An argument that is left over does not belong to the type.
    if arguments or not algorithm.isidentifier() or _CRS.fullmatch(crs) is None:
        return None
    return GeospatialType(kind, crs, algorithm if kind == "geography" else None, name)


def type_name(data_type: DataType) -> str:
    """The type as Spark's DDL writes it, for messages."""
    match data_type:
        case PrimitiveType(name):
            return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(name, name)
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case GeospatialType():
            return data_type.text
        case ArrayType(element, _):
            return f"array<{type_name(element)}>"
        case MapType(key, value, _):
            return f"map<{type_name(key)},{type_name(value)}>"
        case StructType(fields):
            return "struct<" + ",".join(f"{f.name}:{type_name(f.data_type)}" for f in fields) + ">"


def _type_to_json(data_type: DataType) -> Any:
    match data_type:
        case PrimitiveType(name):
            return name
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case GeospatialType():
            return data_type.text
        case ArrayType(element, contains_null):
            return {"type": "array", "elementType": _type_to_json(element), "containsNull": contains_null}
        case MapType(key, value, contains_null):
            return {
                "type": "map",
                "keyType": _type_to_json(key),
                "valueType": _type_to_json(value),
                "valueContainsNull": contains_null,
            }
        case StructType(fields):
            return {"type": "struct", "fields": [field_to_json(f) for f in fields]}


def field_to_json(f: StructField) -> dict[str, Any]:
    return {"name": f.name, "type": _type_to_json(f.data_type), "nullable": f.nullable, "metadata": dict(f.metadata)}


# ---------------------------------------------------------------- Arrow


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type of a column's rows in memory. It is the result of Spark's `to_arrow_schema(schema, timezone="UTC")`, except
    that geometry and geography are only WKB, without the number of the CRS, which belongs to the type.

    Raises UnsupportedOperationError for a type that this version cannot read.
    """
    match data_type:
        case PrimitiveType(name):
            if name not in _ARROW_TYPES:
                raise UnsupportedOperationError(f"Columns of type {name} are not supported. Select the other columns.", type=name)
            return _ARROW_TYPES[name]
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case GeospatialType():
            return pa.binary()
        case ArrayType(element, contains_null):
            return pa.list_(pa.field("element", to_arrow_type(element), nullable=contains_null))
        case MapType(key, value, contains_null):
            return pa.map_(
                pa.field("key", to_arrow_type(key), nullable=False),
                pa.field("value", to_arrow_type(value), nullable=contains_null),
            )
        case StructType(fields):
            return pa.struct([to_arrow_field(f) for f in fields])


def to_arrow_field(f: StructField) -> pa.Field:
    return pa.field(f.name, to_arrow_type(f.data_type), nullable=f.nullable)


def to_arrow_schema(schema: StructType) -> pa.Schema:
    return pa.schema([to_arrow_field(f) for f in schema.fields])


def from_arrow_type(arrow: pa.DataType, name: str = "") -> DataType:
    """The Delta type for the values of an Arrow type, in any layout (arrow_layouts.py).

    All values fit, except numbers that are wider than any Delta type: unsigned integers of 64 bits become bigint, and decimals of
    more than 38 digits get 38. The writer refuses values that do not fit. name: the column, for the error.
    Raises UnsupportedOperationError (DELTA_UNSUPPORTED_DATA_TYPES) if no Delta type can hold the values.
    """
    arrow = plain_type(arrow)
    if isinstance(arrow, pa.BaseExtensionType):  # a shape of GeoArrow: plain_type removes all other extensions
        return from_arrow_type(arrow.storage_type, name)
    simple = _from_simple_arrow(arrow)
    if simple is not None:
        return simple
    if pa.types.is_decimal(arrow) and arrow.scale <= min(arrow.precision, MOST_DIGITS):
        whole_digits = arrow.precision - min(arrow.scale, 0)  # a negative scale means zeros at the end
        return DecimalType(min(whole_digits, MOST_DIGITS), max(arrow.scale, 0))
    if pa.types.is_timestamp(arrow):
        return TIMESTAMP_NTZ if arrow.tz is None else TIMESTAMP
    if pa.types.is_list(arrow):
        return ArrayType(from_arrow_type(arrow.value_type, _part_name(name, "element")), arrow.value_field.nullable)
    if pa.types.is_map(arrow):
        key = from_arrow_type(arrow.key_type, _part_name(name, "key"))
        return MapType(key, from_arrow_type(arrow.item_type, _part_name(name, "value")), arrow.item_field.nullable)
    if pa.types.is_struct(arrow):
        return VARIANT if _is_variant(arrow) else StructType(tuple(_from_arrow_field(f, _part_name(name, f.name)) for f in arrow))
    raise UnsupportedOperationError(
        f"{f'Column {name} has the Arrow type {arrow}' if name else f'The Arrow type is {arrow}'}, and no type of a Delta table "
        f"can hold its values. {_advice(arrow)}",
        error_class="DELTA_UNSUPPORTED_DATA_TYPES",
        sql_state="0AKDC",
        column=name,
        type=str(arrow),
    )


def _part_name(name: str, part: str) -> str:
    """The name of a part of a column, such as `a.element`, for errors; without a column's name, only the part's."""
    return f"{name}.{part}" if name else part


def _advice(arrow: pa.DataType) -> str:
    """The last sentence of the error for an Arrow type without a Delta type."""
    types = pa.types
    if types.is_time(arrow) or types.is_duration(arrow) or types.is_interval(arrow):
        return "Cast the column to a number, such as microseconds, or to text before writing."
    if types.is_union(arrow):
        return "Use a separate column for each of its types, or write a struct of them."
    return "Cast the column before writing."


def _is_variant(arrow: pa.StructType) -> bool:
    """Whether the struct is a variant, which Spark marks in the metadata of its field `metadata`."""
    return any(f.name == "metadata" and (f.metadata or {}).get(b"variant") == b"true" for f in arrow)


_DELTA_TYPES: dict[pa.DataType, DataType] = {
    pa.null(): VOID,
    pa.bool_(): BOOLEAN,
    pa.int8(): BYTE,
    pa.int16(): SHORT,
    pa.int32(): INTEGER,
    pa.int64(): LONG,
    pa.uint8(): SHORT,
    pa.uint16(): INTEGER,
    pa.uint32(): LONG,
    pa.uint64(): LONG,
    pa.float16(): FLOAT,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.string(): STRING,
    pa.binary(): BINARY,
    pa.date32(): DATE,
    pa.date64(): DATE,
}


def _from_simple_arrow(arrow: pa.DataType) -> DataType | None:
    """The Delta type of an Arrow type for which it does not depend on parts, digits or a time zone; None for other types."""
    if pa.types.is_fixed_size_binary(arrow):
        return BINARY
    return _DELTA_TYPES.get(arrow)


def _from_arrow_field(f: pa.Field, name: str) -> StructField:
    return StructField(f.name, from_arrow_type(f.type, name), f.nullable)


def from_arrow_schema(schema: pa.Schema) -> StructType:
    """The Delta schema for an Arrow schema. Raises UnsupportedOperationError (DELTA_UNSUPPORTED_DATA_TYPES) with the name of a
    column whose values no Delta type can hold."""
    return StructType(tuple(_from_arrow_field(f, f.name) for f in schema))


# ---------------------------------------------------------------- walking

V = TypeVar("V")
Path: TypeAlias = tuple[str, ...]


def find_named(schema: StructType, name: str) -> tuple[StructField, ...]:
    """The fields in the path of a name, ignoring case. A name with dots may be the name of one column or a path to a nested
    field; in backticks it is the name of one column. Raises as find_path."""
    return find_path(schema, (name,) if schema.find(name) is not None else split_name(name))


def leaves(schema: StructType) -> Iterator[tuple[Path, StructField]]:
    """Leaf fields in schema order with their paths. Arrays and maps are leaves: only structs are entered."""
    for f in schema.fields:
        if isinstance(f.data_type, StructType):
            for path, leaf in leaves(f.data_type):
                yield (f.name, *path), leaf
        else:
            yield (f.name,), f


def map_fields(schema: StructType, change: Callable[[StructField], StructField]) -> StructType:
    """The schema with every struct field, at any depth, replaced by the result of `change`; inner fields first."""

    def visit(data_type: DataType) -> DataType:
        match data_type:
            case StructType():
                return map_fields(data_type, change)
            case ArrayType(element, contains_null):
                return ArrayType(visit(element), contains_null)
            case MapType(key, value, contains_null):
                return MapType(visit(key), visit(value), contains_null)
        return data_type

    return StructType(tuple(change(replace(f, data_type=visit(f.data_type))) for f in schema.fields))


def find_path(schema: StructType, path: Path) -> tuple[StructField, ...]:
    """The fields along a path of struct field names, ignoring case.

    Raises SchemaMismatchError (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA) with the names of the existing columns.
    """
    fields: list[StructField] = []
    struct: DataType = schema
    for name in path:
        next_field = struct.find(name) if isinstance(struct, StructType) else None
        if next_field is None:
            known_names = ", ".join(struct.names) if isinstance(struct, StructType) else type_name(struct)
            raise SchemaMismatchError(
                f"Column {'.'.join(path)} is not in the schema: {name!r} is not among {known_names}.",
                error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                sql_state="42703",
                column=".".join(path),
            )
        fields.append(next_field)
        struct = next_field.data_type
    return tuple(fields)


def group_by_first_name(values: Mapping[Path, V]) -> dict[str, dict[Path, V]]:
    """Group the values by the first name of their path; the keys in a group are the rest of the path."""
    groups: dict[str, dict[Path, V]] = {}
    for path, value in values.items():
        groups.setdefault(path[0], {})[path[1:]] = value
    return groups
