"""Where a stream stands in a table: StreamOffset, and its JSON.

    {"sourceVersion": 1, "reservoirId": table id, "reservoirVersion": version, "index": index, "isStartingVersion": bool}

A batch is a function of the two offsets that bound it. The reference's streams have the same form, without the last two rows.

    sourceVersion        the version of this form: 1; 3 for a place at a change of the schema; others are refused
    reservoirId          the table's id; another table at the path is refused
    reservoirVersion     the version that is being read; all versions before it are read
    index                the last file of it that is read, from 0. -1: none. -20 and -19: before and after a change of the schema,
                         and before all files. After the last file the offset is (version + 1, -1)
    isStartingVersion    true: the files of the table at that version, by (modification time, path as the log spells it).
                         false: the files that its commit added, in the commit's order, without those with dataChange=false;
                         for a change feed its change files, or else the adds and removes that change data, in that order
    begins, beganAtVersion, beganWithSnapshot
                         Spark does not store where the first batch begins, and asks again if it runs that batch again. The
                         place that it gets is marked with `begins`, and the end of the batch says where it really began
    eventTimeColumn      with sourceVersion 100 only: files are ordered by the least time in this column, and all rows before
                         the least time of the files after `index` are read

The reference's change feeds stay at the last change that they read, and do not start from a version that does not exist yet.
So such a place names the last change, and the version in goesOnWithVersion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from delta_py.errors import InvalidOptionError, shown

BEFORE_FIRST = -1
# Of streams with a log of schemas (schema_tracking.py): before all files of a commit that changes the schema. Spark tells that a
# batch is done when the next one has begun; therefore there are two such places.
SCHEMA_CHANGE, AFTER_SCHEMA_CHANGE = -20, -19
_FORM = 1
# With one of these places; in it the place before the first file is -100.
_FORM_WITH_SCHEMA_LOG, _BEFORE_FIRST_OF_IT = 3, -100
# With the field eventTimeColumn. The reference has no such order, and refuses the number.
_FORM_BY_TIME = 100
_LONGS = range(2**63)


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """All files up to and with the one at `index` of `version` are read, and all versions before.

    is_initial: the files are those of the table at `version`, in the order of (modification time, path); later versions
    follow. Otherwise they are those that the commit of `version` added, in its order, leaving out those that only arrange
    rows anew. index: BEFORE_FIRST when none of them is read; a version that is read to its end is left for the next one.
    begins: it is the place where a new stream begins. Spark does not keep such a place: when the first batch is run again it
    asks anew, and the table has gone on. So the end of that batch says in began, as (version, is_initial), where it began.
    order: the column by whose times the files of an initial snapshot are ordered instead, or None; then all rows before the
    least time of the files behind `index` are read. last_change: (version, index) of a feed's last change before a place that
    is before all of its version; None where there is none or it is not known.
    """

    table_id: str
    version: int
    index: int = BEFORE_FIRST
    is_initial: bool = False
    order: str | None = None
    begins: bool = field(default=False, compare=False)
    began: tuple[int, bool] | None = field(default=None, compare=False)
    last_change: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def is_schema_change(self) -> bool:
        return self.index in (SCHEMA_CHANGE, AFTER_SCHEMA_CHANGE)

    @property
    def next_index(self) -> int:
        """Of the first file that is not read."""
        return max(0, self.index + 1)

    def true_start(self, end: StreamOffset) -> StreamOffset:
        """The start of the batch that ends at `end`, of which self is what Spark says."""
        if not self.begins:
            return self
        if end.began is not None:
            return replace(self, version=end.began[0], is_initial=end.began[1])
        if self.is_initial:  # of another writer: what was there before the version in which the batch ends
            return replace(self, version=end.version if end.is_initial else end.version - 1)
        return self

    def to_json(self) -> dict[str, Any]:
        form, order = (_FORM, {}) if self.order is None else (_FORM_BY_TIME, {"eventTimeColumn": self.order})
        form = _FORM_WITH_SCHEMA_LOG if self.is_schema_change else form
        place, goes_on = (self.version, self.index), {}
        if self.last_change is not None and self.index == BEFORE_FIRST:
            place, goes_on = self.last_change, {"goesOnWithVersion": self.version}
        return {
            "sourceVersion": form,
            "reservoirId": self.table_id,
            "reservoirVersion": place[0],
            "index": place[1],
            "isStartingVersion": self.is_initial,
            **goes_on,
            **order,
            **({"begins": True} if self.begins else {}),
            **({} if self.began is None else {"beganAtVersion": self.began[0], "beganWithSnapshot": self.began[1]}),
        }

    @classmethod
    def from_json(cls, value: Any) -> StreamOffset:
        """value: whatever the checkpoint has; fields that are not known are left out. Raises InvalidOptionError
        (DELTA_INVALID_SOURCE_OFFSET_FORMAT, DELTA_INVALID_SOURCE_VERSION)."""
        if not isinstance(value, Mapping):
            raise _unreadable(value)
        form = value.get("sourceVersion")
        if type(form) is int and form not in (_FORM, _FORM_WITH_SCHEMA_LOG, _FORM_BY_TIME):
            raise InvalidOptionError(
                f"The stream's checkpoint has an offset of form {form}, and only {_FORM} is known: a newer writer made it. Go "
                "on with that writer, or start a new checkpoint.",
                error_class="DELTA_INVALID_SOURCE_VERSION",
                sql_state="XXKDS",
                form=form,
            )
        place = (value.get("reservoirId"), value.get("reservoirVersion"), value.get("index"), value.get("isStartingVersion"))
        order = value.get("eventTimeColumn")
        types = [type(item) for item in (form, *place)]
        if types != [int, str, int, int, bool] or isinstance(order, str) != (form == _FORM_BY_TIME):
            raise _unreadable(value)
        offset = cls(*place, order=order, begins=value.get("begins") is True, began=_began(value))  # type: ignore[arg-type]
        goes_on = value.get("goesOnWithVersion")
        if type(goes_on) is int and goes_on > offset.version:
            offset = replace(offset, version=goes_on, index=BEFORE_FIRST, last_change=(offset.version, offset.index))
        if form == _FORM_WITH_SCHEMA_LOG and offset.index == _BEFORE_FIRST_OF_IT:
            offset = replace(offset, index=BEFORE_FIRST)
        if not offset._is_possible():
            raise _unreadable(value)
        return offset

    def _is_possible(self) -> bool:
        versions = (self.version, 0 if self.began is None else self.began[0])
        is_before_files = self.is_schema_change or self.index == BEFORE_FIRST
        return all(version in _LONGS for version in versions) and (is_before_files or self.index in _LONGS[:-1])


def _began(value: Mapping[str, Any]) -> tuple[int, bool] | None:
    version, is_initial = value.get("beganAtVersion"), value.get("beganWithSnapshot")
    return (version, is_initial) if type(version) is int and type(is_initial) is bool else None


def _unreadable(value: object) -> InvalidOptionError:
    return InvalidOptionError(
        f"The stream's checkpoint has an offset that cannot be read: {shown(value)}. It was changed or is damaged: restore the "
        "checkpoint, or start a new one.",
        error_class="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        sql_state="XXKDS",
    )
