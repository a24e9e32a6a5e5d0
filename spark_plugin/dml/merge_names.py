"""Decides whether a name in a MERGE is a column of the target or of the source, from their schemas alone.

    names = Names(target=schema, source=schema, alias=("t",), case_sensitive=False)
    names.column(("t", "id"))            # NameMeaning("target", LongType())

A Spark Connect server logs each request that it refuses as an error, so pydelta does not ask it whether one of the frames has a
column of this name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from pyspark.sql.types import DataType, StructField, StructType

from spark_plugin.dml.target_names import Alias, counts_of_qualifiers

Side: TypeAlias = Literal["target", "source"]

_MOST_QUALIFIERS = 3  # catalog.database.table


@dataclass(frozen=True, slots=True)
class NameMeaning:
    """The side and the type of the column or field that a name refers to. data_type: None if the schemas do not decide which of
    several columns it is."""

    side: Side
    data_type: DataType | None


@dataclass(frozen=True)
class Names:
    """The names of both sides of a MERGE. A qualifier is a leading part of a name that names a table, not a column. alias: the
    target's only qualifiers. The source's qualifiers are not known. case_sensitive: the session's setting."""

    target: StructType
    source: StructType
    alias: Alias
    case_sensitive: bool

    def column(self, path: tuple[str, ...]) -> NameMeaning | None:
        """Return the meaning of a name that Spark's analyzer has accepted over both sides, so that it is not ambiguous. path: its
        parts. Returns None if the schemas do not decide.

        Spark prefers the columns for which the most leading parts are qualifiers.
        """
        target_readings, source_readings = self._target_readings(path), self._source_readings(path)
        if not source_readings:
            return NameMeaning("target", target_readings[max(target_readings)]) if target_readings else None
        if not target_readings:
            return NameMeaning("source", next(iter(source_readings.values())) if len(source_readings) == 1 else None)
        # If the target's reading has more qualifiers than each reading of the source, Spark prefers it. It may also have as many:
        # Spark would have reported the name as ambiguous if the source really had such a column.
        is_targets = max(target_readings) > 0 and max(source_readings) <= max(target_readings)
        return NameMeaning("target", target_readings[max(target_readings)]) if is_targets else None

    def is_known(self, path: tuple[str, ...], side: Side) -> bool:
        """Return whether the side may have such a column or field."""
        return bool(self._target_readings(path) if side == "target" else self._source_readings(path))

    def _target_readings(self, path: tuple[str, ...]) -> Mapping[int, DataType | None]:
        """Return what the path can mean in the target. Each key is a number of leading parts that are qualifiers. Its value is
        the type of the column or field that the rest of the path names; None if the rest names several. Empty if it names
        none."""
        counts = [0, *counts_of_qualifiers(path, self.alias, self._is_same_name)]
        types_by_count = (self._matching_types(self.target, path, count) for count in counts)
        return {count: kind for types in types_by_count for count, kind in types.items()}

    def _source_readings(self, path: tuple[str, ...]) -> Mapping[int, DataType | None]:
        """Do the same as _target_readings for the source, where any leading parts may be qualifiers."""
        counts = range(_MOST_QUALIFIERS + 1)
        types_by_count = (self._matching_types(self.source, path, count) for count in counts)
        return {count: kind for types in types_by_count for count, kind in types.items()}

    def _matching_types(self, schema: StructType, path: tuple[str, ...], qualifiers: int) -> Mapping[int, DataType | None]:
        """Return the entry of _target_readings or _source_readings for one number of qualifiers; no entry if the rest of the path
        names nothing."""
        if len(path) <= qualifiers:
            return {}
        columns = self._columns_of_target if schema is self.target else self._columns_of_source
        kinds = [column.dataType for column in columns.get(self._key(path[qualifiers]), ())]
        for part in path[qualifiers + 1 :]:
            structs = [kind for kind in kinds if isinstance(kind, StructType)]
            kinds = [field.dataType for kind in structs for field in kind.fields if self._is_same_name(field.name, part)]
        if not kinds:
            return {}
        return {qualifiers: kinds[0] if len(kinds) == 1 else None}

    @cached_property
    def _columns_of_target(self) -> Mapping[str, list[StructField]]:
        return self._by_name(self.target)

    @cached_property
    def _columns_of_source(self) -> Mapping[str, list[StructField]]:
        return self._by_name(self.source)

    def _by_name(self, schema: StructType) -> Mapping[str, list[StructField]]:
        """Return the columns by the key of their name: several if the session ignores case or the names are equal."""
        columns: dict[str, list[StructField]] = {}
        for column in schema.fields:
            columns.setdefault(self._key(column.name), []).append(column)
        return columns

    def _key(self, name: str) -> str:
        return name if self.case_sensitive else name.lower()

    def _is_same_name(self, first: str, second: str) -> bool:
        return first == second or (not self.case_sensitive and first.lower() == second.lower())
