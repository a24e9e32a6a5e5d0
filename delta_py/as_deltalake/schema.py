"""deltalake's classes for schemas: Schema, Field, PrimitiveType, ArrayType, MapType, StructType, VariantType.

Each wraps a value of delta_py/types/schema.py (`as_delta`), from which its JSON, its Arrow type and its equality come.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, TypeAlias

import pyarrow as pa

from delta_py.as_deltalake.arrow_exchange import (
    field_in,
    field_out,
    large_types,
    schema_in,
    schema_out,
    type_in,
    type_out,
)
from delta_py.deltalake_methods import arrow_schema_in
from delta_py.errors import CorruptTableError, DeltaError, UnsupportedOperationError
from delta_py.types import schema as delta
from delta_py.types.column_rules import INVARIANT

_KNOWN = (
    *("string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp", "timestamp_ntz"),
)
# deltalake stores unsigned integers as signed ones of the same width. Values in their upper half do not fit.
_UNSIGNED = {pa.uint8(): delta.BYTE, pa.uint16(): delta.SHORT, pa.uint32(): delta.INTEGER, pa.uint64(): delta.LONG}


class _Type:
    """Base of deltalake's classes for types. as_delta: the wrapped type of delta_py. _kind: the class, or classes, of delta_py
    that a subclass wraps."""

    as_delta: delta.DataType
    _kind: ClassVar[type | tuple[type, ...]]

    @classmethod
    def _of(cls, data_type: delta.DataType) -> Self:
        """An object of this class that wraps a type of delta_py. Raises TypeError if another class wraps that type."""
        if not isinstance(data_type, cls._kind):
            raise TypeError(f"{delta.type_name(data_type)} is no {cls.__name__}")
        new = cls.__new__(cls)
        new.as_delta = data_type
        return new

    def to_json(self) -> str:
        return json.dumps(_json_of(self.as_delta), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The type with this JSON. Raises ValueError for a text that is no type, TypeError for a type of another class."""
        try:
            return cls._of(_from_json(text))
        except DeltaError as error:
            raise ValueError(str(error)) from error

    def to_arrow(self) -> Any:
        return type_out(delta.to_arrow_type(self.as_delta))

    @classmethod
    def from_arrow(cls, data_type: Any) -> Self:
        """The type for an Arrow type of any library. Raises TypeError if that type has another class."""
        return cls._of(_from_arrow_type(type_in(data_type)))

    def __arrow_c_schema__(self) -> object:
        return delta.to_arrow_type(self.as_delta).__arrow_c_schema__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Type) and other.as_delta == self.as_delta

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_json()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type_of, (self.as_delta,)


class PrimitiveType(_Type):
    """A type without parts, by its name, such as `long` or `decimal(10,2)`. Raises ValueError for a name that is no type."""

    _kind = (delta.PrimitiveType, delta.DecimalType, delta.GeospatialType)

    def __init__(self, data_type: str) -> None:
        if data_type not in _KNOWN and not data_type.startswith("decimal("):
            raise ValueError(f"{data_type!r} is no type. Use one of {', '.join(_KNOWN)}, decimal(precision,scale).")
        self.as_delta = delta.primitive_from_name(data_type)

    @property
    def type(self) -> str:
        return str(_json_of(self.as_delta))


class VariantType(_Type):
    _kind = delta.PrimitiveType
    type = "variant"

    def __init__(self) -> None:
        self.as_delta = delta.VARIANT

    def __repr__(self) -> str:
        return "VariantType()"


class ArrayType(_Type):
    _kind = delta.ArrayType
    type = "array"
    as_delta: delta.ArrayType

    def __init__(self, element_type: DataType | str, contains_null: bool = True) -> None:
        self.as_delta = delta.ArrayType(_delta_type(element_type), contains_null)

    @property
    def element_type(self) -> DataType:
        return type_of(self.as_delta.element_type)

    @property
    def contains_null(self) -> bool:
        return self.as_delta.contains_null

    def __repr__(self) -> str:
        return f"ArrayType({self.element_type!r}, contains_null={self.contains_null})"


class MapType(_Type):
    _kind = delta.MapType
    type = "map"
    as_delta: delta.MapType

    def __init__(self, key_type: DataType | str, value_type: DataType | str, value_contains_null: bool = True) -> None:
        self.as_delta = delta.MapType(_delta_type(key_type), _delta_type(value_type), value_contains_null)

    @property
    def key_type(self) -> DataType:
        return type_of(self.as_delta.key_type)

    @property
    def value_type(self) -> DataType:
        return type_of(self.as_delta.value_type)

    @property
    def value_contains_null(self) -> bool:
        return self.as_delta.value_contains_null

    def __repr__(self) -> str:
        return f"MapType({self.key_type!r}, {self.value_type!r}, value_contains_null={self.value_contains_null})"


class StructType(_Type):
    _kind = delta.StructType
    type = "struct"
    as_delta: delta.StructType

    def __init__(self, fields: Sequence[Field]) -> None:
        self.as_delta = delta.StructType(tuple(field.as_delta for field in fields))

    @property
    def fields(self) -> list[Field]:
        return [Field._of(field) for field in self.as_delta.fields]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fields!r})"


class Schema(StructType):
    """The columns of a table."""

    @property
    def invariants(self) -> list[tuple[str, str]]:
        """Columns with the old form of constraints, and the SQL of their conditions."""
        invariants_json = ((field.name, field.metadata.get(INVARIANT)) for field in self.as_delta.fields)
        return [(name, json.loads(text)["expression"]["expression"]) for name, text in invariants_json if text is not None]

    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.to_json())
        return value

    def to_arrow(self, as_large_types: bool = False) -> Any:
        schema = self._to_pyarrow()
        return schema_out(large_types(schema) if as_large_types else schema)

    @classmethod
    def from_arrow(cls, data_type: Any) -> Self:
        """The columns of an Arrow schema. Raises TypeError for columns whose types no table has."""
        return cls([Field.from_arrow(field) for field in schema_in(data_type)])

    def __arrow_c_schema__(self) -> object:
        return self._to_pyarrow().__arrow_c_schema__()

    def _to_pyarrow(self) -> pa.Schema:
        return pa.schema([field._to_pyarrow() for field in self.fields])


DataType: TypeAlias = PrimitiveType | MapType | StructType | ArrayType | VariantType


class Field:
    """A column, or a field of a struct. metadata: values that JSON has; the attribute has lists and objects as JSON texts."""

    as_delta: delta.StructField

    def __init__(self, name: str, type: DataType | str, nullable: bool = True, metadata: Mapping[str, Any] | None = None) -> None:
        self.as_delta = delta.StructField(name, _delta_type(type), nullable, dict(metadata or {}))

    @classmethod
    def _of(cls, field: delta.StructField) -> Field:
        """A Field that wraps a field of delta_py. Pickles name this method."""
        new = cls.__new__(cls)
        new.as_delta = field
        return new

    @property
    def name(self) -> str:
        return self.as_delta.name

    @property
    def type(self) -> DataType:
        return type_of(self.as_delta.data_type)

    @property
    def nullable(self) -> bool:
        return self.as_delta.nullable

    @property
    def metadata(self) -> dict[str, Any]:
        return {name: _shown_value(value) for name, value in self.as_delta.metadata.items()}

    def to_json(self) -> str:
        return json.dumps(delta.field_to_json(self.as_delta), separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Field:
        """The field with this JSON. Raises ValueError for a text that is no field."""
        return StructType.from_json(f'{{"type":"struct","fields":[{text}]}}').fields[0]

    def to_arrow(self) -> Any:
        return field_out(self._to_pyarrow())

    @staticmethod
    def from_arrow(field: Any) -> Field:
        """The field for an Arrow field of any library. Raises TypeError for a type that no table has."""
        arrow = field_in(field)
        metadata = {key.decode(): value.decode() for key, value in (arrow.metadata or {}).items()}
        metadata = {key: value for key, value in metadata.items() if not key.startswith(("PARQUET:", "ARROW:"))}
        return Field._of(delta.StructField(arrow.name, _from_arrow_type(arrow.type), arrow.nullable, metadata))

    def __arrow_c_schema__(self) -> object:
        return self._to_pyarrow().__arrow_c_schema__()

    def _to_pyarrow(self) -> pa.Field:
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in self.metadata.items()}
        return delta.to_arrow_field(self.as_delta).with_metadata(texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and other.as_delta == self.as_delta

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        metadata = f", metadata={self.metadata}" if self.metadata else ""
        return f"Field({self.name}, {self.type!r}, nullable={self.nullable}{metadata})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Field._of, (self.as_delta,)


# ---------------------------------------------------------------- to and from delta_py's types


def type_of(data_type: delta.DataType) -> DataType:
    """An object of deltalake's class for a type, which wraps the type of delta_py."""
    wrapper_classes = {delta.ArrayType: ArrayType, delta.MapType: MapType, delta.StructType: StructType}
    wrapper_class = wrapper_classes.get(type(data_type), VariantType if data_type == delta.VARIANT else PrimitiveType)
    wrapped: DataType = wrapper_class._of(data_type)  # type: ignore[attr-defined]
    return wrapped


def columns_of(schema: Any, option: str = "schema") -> delta.StructType:
    """The columns of a Schema, or of any object with an Arrow schema. option: the name of the caller's argument, for messages.
    Raises TypeError for types that no table has; InvalidOptionError for a value that is no schema."""
    return schema.as_delta if isinstance(schema, StructType) else Schema.from_arrow(arrow_schema_in(schema, option)).as_delta


def _delta_type(data_type: Any) -> delta.DataType:
    """delta_py's type for a type's name, or for an object of the classes here. Raises TypeError for other values."""
    if isinstance(data_type, str):
        return VariantType().as_delta if data_type == "variant" else PrimitiveType(data_type).as_delta
    if isinstance(data_type, _Type):
        return data_type.as_delta
    raise TypeError(f"{data_type!r} is no type of a column. Give a name such as 'long', or an object of deltalake.schema.")


def _from_arrow_type(arrow: pa.DataType) -> delta.DataType:
    """delta_py's type for an Arrow type. Raises TypeError for a type that no table has."""
    if arrow in _UNSIGNED:
        return _UNSIGNED[arrow]
    try:
        return delta.from_arrow_type(arrow)
    except UnsupportedOperationError as error:
        raise TypeError(error.message) from error


def _json_of(data_type: delta.DataType) -> Any:
    """The type in the form of the protocol: a text for a primitive type, else a dict. It is taken out of the JSON of a field."""
    return delta.field_to_json(delta.StructField("", data_type))["type"]


def _from_json(text: str) -> delta.DataType:
    """delta_py's type for JSON in the form of the protocol. The parser takes only whole schemas, so the type is put into one.
    Raises CorruptTableError."""
    try:
        wrapped = {"type": "struct", "fields": [{"name": "x", "type": json.loads(text), "nullable": True, "metadata": {}}]}
    except json.JSONDecodeError as error:
        raise CorruptTableError(f"The text is no JSON: {error}.") from error
    return delta.parse_schema(json.dumps(wrapped)).fields[0].data_type


def _shown_value(value: Any) -> Any:
    """A value of a field's metadata; lists and objects as JSON texts."""
    return value if isinstance(value, str | int | float | bool) or value is None else json.dumps(value, separators=(",", ":"))
