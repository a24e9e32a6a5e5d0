"""The position of a stream in a table: StreamOffset, and its JSON.

    {"sourceVersion": 1, "reservoirId": table id, "reservoirVersion": version, "index": index, "isStartingVersion": bool}

The two offsets that bound a batch determine its rows. The offsets of delta-spark's streams have the same fields, without those of
the last two entries of this list:

    sourceVersion        the version of this form: 1; 3 for an offset at a change of the schema; others are refused
    reservoirId          the table's id; another table at the path is refused
    reservoirVersion     the version that the stream is reading; it has read all versions before it
    index                the last file of the version that was read, from 0. -1: none. -20 and -19: before and after a change of
                         the schema, and before all files. After the last file the offset is (version + 1, -1)
    isStartingVersion    true: the files of the table at that version, by (modification time, path as the log spells it).
                         false: the files that its commit added, in the commit's order, without those with dataChange=false;
                         for a change feed its change files, or else the adds and removes that change data, in that order
    begins, beganAtVersion, beganWithSnapshot
                         Spark does not store where the first batch begins, and asks again if it runs that batch again. The
                         offset that Spark gets then is marked with `begins`, and the end of the batch contains its true begin
    eventTimeColumn      with sourceVersion 100 only: files are ordered by their minimum time in this column, and the stream has
                         read all rows before the minimum time of the files after `index`

delta-spark's change feeds stay at the last change that they read, and do not start from a version that does not exist yet.
So such an offset has the position of the last change, and the next version in goesOnWithVersion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from delta_py.errors import InvalidOptionError, shown

BEFORE_FIRST = -1
# Indexes of streams with a log of schemas (schema_tracking.py): before all files of a commit that changes the schema. Spark
# reports that a batch is done when the next batch has begun; therefore there are two such indexes.
SCHEMA_CHANGE, AFTER_SCHEMA_CHANGE = -20, -19
_FORM = 1
# The form with one of these indexes; in this form the index before the first file is -100.
_FORM_WITH_SCHEMA_LOG, _BEFORE_FIRST_WITH_SCHEMA_LOG = 3, -100
# With the field eventTimeColumn. delta-spark has no such order, and refuses the number.
_FORM_BY_TIME = 100
_LONGS = range(2**63)


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The stream has read all files up to and including the one at `index` of `version`, and all versions before.

    is_initial: the files are those of the table at `version`, in the order of (modification time, path); later versions
    follow. Otherwise they are those that the commit of `version` added, in its order, without those that only rearrange
    rows. index: BEFORE_FIRST if none of them was read. A version that was read to its end is stored as the start of the next one.
    begins: whether a new stream begins at this offset. Spark does not store the first offset: if it runs the first batch again,
    it asks for the first offset again, and the table may have new versions by then. So the end of the first batch stores in
    `began`, as (version, is_initial), where that batch began.
    order: the column whose times order the files of an initial snapshot instead, or None; then the stream has read all rows
    before the minimum time of the files after `index`. last_change: (version, index) of a feed's last change before an offset
    that is before all of its version; None if there is none or it is not known.
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
        """The index of the first file that was not read."""
        return max(0, self.index + 1)

    def true_start(self, end: StreamOffset) -> StreamOffset:
        """The offset after which the batch that ends at `end` begins. self is the start that Spark passes. For the first batch of
        a stream, it may be newer than the true one (see `begins`)."""
        if not self.begins:
            return self
        if end.began is not None:
            return replace(self, version=end.began[0], is_initial=end.began[1])
        if self.is_initial:  # written by another writer: the rows of the table before the version in which the batch ends
            return replace(self, version=end.version if end.is_initial else end.version - 1)
        return self

    def to_json(self) -> dict[str, Any]:
        """The offset as the checkpoint stores it (see the docstring of this file)."""
        form, order = (_FORM, {}) if self.order is None else (_FORM_BY_TIME, {"eventTimeColumn": self.order})
        form = _FORM_WITH_SCHEMA_LOG if self.is_schema_change else form
        position, continuation = (self.version, self.index), {}
        if self.last_change is not None and self.index == BEFORE_FIRST:
            position, continuation = self.last_change, {"goesOnWithVersion": self.version}
        return {
            "sourceVersion": form,
            "reservoirId": self.table_id,
            "reservoirVersion": position[0],
            "index": position[1],
            "isStartingVersion": self.is_initial,
            **continuation,
            **order,
            **({"begins": True} if self.begins else {}),
            **({} if self.began is None else {"beganAtVersion": self.began[0], "beganWithSnapshot": self.began[1]}),
        }

    @classmethod
    def from_json(cls, value: Any) -> StreamOffset:
        """The inverse of to_json. value: from the checkpoint; unknown fields are ignored. Raises InvalidOptionError
        (DELTA_INVALID_SOURCE_OFFSET_FORMAT, DELTA_INVALID_SOURCE_VERSION)."""
        if not isinstance(value, Mapping):
            raise _unreadable_error(value)
        form = value.get("sourceVersion")
        if type(form) is int and form not in (_FORM, _FORM_WITH_SCHEMA_LOG, _FORM_BY_TIME):
            raise InvalidOptionError(
                f"The stream's checkpoint has an offset of form {form}, which is unknown: a newer writer made it. Go "
                "on with that writer, or start a new checkpoint.",
                error_class="DELTA_INVALID_SOURCE_VERSION",
                sql_state="XXKDS",
                form=form,
            )
        fields = (value.get("reservoirId"), value.get("reservoirVersion"), value.get("index"), value.get("isStartingVersion"))
        order = value.get("eventTimeColumn")
        types = [type(item) for item in (form, *fields)]
        if types != [int, str, int, int, bool] or isinstance(order, str) != (form == _FORM_BY_TIME):
            raise _unreadable_error(value)
        offset = cls(*fields, order=order, begins=value.get("begins") is True, began=_read_begin(value))  # type: ignore[arg-type]
        next_version = value.get("goesOnWithVersion")
        if type(next_version) is int and next_version > offset.version:
            # The JSON has the position of the feed's last change, as delta-spark expects it (see above).
            offset = replace(offset, version=next_version, index=BEFORE_FIRST, last_change=(offset.version, offset.index))
        if form == _FORM_WITH_SCHEMA_LOG and offset.index == _BEFORE_FIRST_WITH_SCHEMA_LOG:
            offset = replace(offset, index=BEFORE_FIRST)
        if not offset._is_in_range():
            raise _unreadable_error(value)
        return offset

    def _is_in_range(self) -> bool:
        """Whether versions and indexes are in their ranges. The index after a file's index must fit into 64 bits, too."""
        versions = (self.version, 0 if self.began is None else self.began[0])
        is_before_files = self.is_schema_change or self.index == BEFORE_FIRST
        return all(version in _LONGS for version in versions) and (is_before_files or self.index in _LONGS[:-1])


def _read_begin(value: Mapping[str, Any]) -> tuple[int, bool] | None:
    """StreamOffset.began, from its JSON."""
    version, is_initial = value.get("beganAtVersion"), value.get("beganWithSnapshot")
    return (version, is_initial) if type(version) is int and type(is_initial) is bool else None


def _unreadable_error(value: object) -> InvalidOptionError:
    """The error for an offset in a checkpoint that has no valid form."""
    return InvalidOptionError(
        f"The stream's checkpoint has an offset that cannot be read: {shown(value)}. It was changed or is damaged: restore the "
        "checkpoint, or start a new one.",
        error_class="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        sql_state="XXKDS",
    )
