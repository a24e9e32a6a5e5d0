"""Where a stream stands in a table: StreamOffset, and its JSON.

    {"sourceVersion": 1, "reservoirId": table id, "reservoirVersion": version, "index": index, "isStartingVersion": bool}

It is the form in which the reference's streams keep their offsets, with fields of our own beside theirs. sourceVersion is the
version of this form: a newer one is refused, as what it means is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from delta_py.errors import InvalidOptionError, UnsupportedOperationError

BEFORE_FIRST = -1
_FORM = 1
# The reference also writes form 3, for streams with a log of schemas; in it the place before the first file is -100, and
# -20 and -19 are places before and after a change of the schema.
_FORM_WITH_SCHEMA_LOG, _BEFORE_FIRST_OF_IT = 3, -100
# With the field eventTimeColumn. The reference has no such order, and refuses the number.
_FORM_BY_TIME = 100


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """All files up to and with the one at `index` of `version` are read, and all versions before.

    is_initial: the files are those of the table at `version`, in the order of (modification time, path); later versions
    follow. Otherwise they are those that the commit of `version` added, in its order, leaving out those that only arrange
    rows anew. index: BEFORE_FIRST when none of them is read; a version that is read to its end is left for the next one.
    begins: it is the place where a new stream begins. Spark does not keep such a place: when the first batch is run again it
    asks anew, and the table has gone on. So the end of that batch says in began, as (version, is_initial), where it began.
    order: the column by whose times the files of an initial snapshot are ordered instead, or None; then all rows before the
    least time of the files behind `index` are read.
    """

    table_id: str
    version: int
    index: int = BEFORE_FIRST
    is_initial: bool = False
    order: str | None = None
    begins: bool = field(default=False, compare=False)
    began: tuple[int, bool] | None = field(default=None, compare=False)

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
        return {
            "sourceVersion": form,
            "reservoirId": self.table_id,
            "reservoirVersion": self.version,
            "index": self.index,
            "isStartingVersion": self.is_initial,
            **order,
            **({"begins": True} if self.begins else {}),
            **({} if self.began is None else {"beganAtVersion": self.began[0], "beganWithSnapshot": self.began[1]}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StreamOffset:
        """Fields that are not known are left out. Raises InvalidOptionError (DELTA_INVALID_SOURCE_OFFSET_FORMAT,
        DELTA_INVALID_SOURCE_VERSION), UnsupportedOperationError for the place of a change of the schema."""
        form = value.get("sourceVersion")
        if form not in (_FORM, _FORM_WITH_SCHEMA_LOG, _FORM_BY_TIME):
            raise InvalidOptionError(
                f"The stream's checkpoint has an offset of form {form!r}, and only {_FORM} is known: a newer writer made it. Go "
                "on with that writer, or start a new checkpoint.",
                error_class="DELTA_INVALID_SOURCE_VERSION",
                sql_state="XXKDS",
                form=form,
            )
        found = (value.get("reservoirId"), value.get("reservoirVersion"), value.get("index"), value.get("isStartingVersion"))
        order = value.get("eventTimeColumn")
        if [type(item) for item in found] != [str, int, int, bool] or isinstance(order, str) != (form == _FORM_BY_TIME):
            raise InvalidOptionError(
                f"The stream's checkpoint has an offset that cannot be read: {dict(value)}. It was changed or is damaged: "
                "restore the checkpoint, or start a new one.",
                error_class="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
                sql_state="XXKDS",
            )
        began = (value.get("beganAtVersion"), value.get("beganWithSnapshot"))
        told = began if type(began[0]) is int and type(began[1]) is bool else None
        offset = cls(*found, order=order, begins=value.get("begins") is True, began=told)  # type: ignore[arg-type]
        return _in_our_form(offset) if form == _FORM_WITH_SCHEMA_LOG else offset


def _in_our_form(offset: StreamOffset) -> StreamOffset:
    if offset.index >= 0:
        return offset
    if offset.index == _BEFORE_FIRST_OF_IT:
        return replace(offset, index=BEFORE_FIRST)
    raise UnsupportedOperationError(
        f"The stream's checkpoint stands at a change of the schema in version {offset.version}, in a log of schemas "
        "(schemaTrackingLocation), which this version does not have. Go on with the writer of the checkpoint until it has passed "
        "the change.",
        option="schemaTrackingLocation",
        version=offset.version,
    )
