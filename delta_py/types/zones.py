"""Convert between instants and wall clocks of a time zone.

Arrays of instants are timestamp[us, UTC], arrays of wall clocks are timestamp[us]. Gaps and overlaps follow java.time: a wall
clock in a gap moves forward by the gap's length, and a wall clock in an overlap means the earlier instant. An unknown zone raises
ExpressionError (INVALID_TIMEZONE).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import ExpressionError
from delta_py.time_zones import offset_seconds, region_name
from delta_py.types.arrow_values import FALSE, array, from_numpy, scalar, to_numpy
from delta_py.types.late_zones import FIRST_LATE_MICROS, late_offsets

INSTANT = pa.timestamp("us", tz="UTC")
WALL_CLOCK = pa.timestamp("us")

_FIRST_LATE = scalar(FIRST_LATE_MICROS, pa.int64())

_Int64 = np.ndarray[Any, np.dtype[np.int64]]


@lru_cache(maxsize=256)
def region(zone: str) -> str:
    """The region's name in Arrow's time zone database. Raises ExpressionError for an unknown region."""
    name = region_name(zone)
    if not name[:1].isalpha():  # no region's name begins otherwise
        raise _unknown_zone(zone)
    try:  # Arrow reports an unknown region when it is used
        pc.local_timestamp(array([0], pa.int64()).cast(pa.timestamp("us", tz=name)))
    except (pa.ArrowException, UnicodeError, OSError) as error:
        raise _unknown_zone(zone) from error
    return name


def _unknown_zone(zone: str) -> ExpressionError:
    return ExpressionError(
        f"The time zone {zone!r} is unknown. Use a region such as Europe/Paris or an offset such as +01:00.",
        error_class="INVALID_TIMEZONE",
        sql_state="22009",
        timezone=zone,
    )


def check_zone(zone: str) -> None:
    """Raises ExpressionError (INVALID_TIMEZONE) for an unknown zone."""
    if offset_seconds(zone) is None:
        region(zone)


def to_wall_clock(instants: Any, zone: str) -> Any:
    """What clocks of the zone show at the instants. zone: a region or an offset. Raises ExpressionError for an unknown zone."""
    offset = offset_seconds(zone)
    if offset is not None:
        return _shift(instants, offset, WALL_CLOCK)
    clocks = pc.local_timestamp(instants.cast(pa.timestamp("us", tz=region(zone))))
    return _replace_late_times(
        clocks, instants, lambda micros: micros + late_offsets(micros, region(zone), are_wall_clocks=False)
    )


def to_instants(wall_clocks: Any, zone: str) -> Any:
    """The instants at which clocks of the zone show these times. zone: a region or an offset. Raises ExpressionError for an
    unknown zone."""
    offset = offset_seconds(zone)
    if offset is not None:
        return _shift(wall_clocks, -offset, INSTANT)
    last_before_gap = pc.assume_timezone(wall_clocks, region(zone), ambiguous="earliest", nonexistent="earliest")
    # Outside of gaps, this is the instant itself. In a gap, it is the last instant before the gap, and java.time continues with
    # the offset of that instant.
    offset_before_gap = pc.subtract(pc.local_timestamp(last_before_gap).cast(pa.int64()), last_before_gap.cast(pa.int64()))
    instants = pc.subtract(wall_clocks.cast(pa.int64()), offset_before_gap).cast(INSTANT)
    return _replace_late_times(
        instants, wall_clocks, lambda micros: micros - late_offsets(micros, region(zone), are_wall_clocks=True)
    )


def _replace_late_times(converted: Any, times: Any, change: Callable[[_Int64], _Int64]) -> Any:
    """`converted`, but with the result of `change` for times from 2037 on, because Arrow changes no clocks then.

    converted: Arrow's result. times: what was converted. change: converts microseconds since 1970.
    """
    micros = times.cast(pa.int64())
    is_late = pc.fill_null(pc.greater_equal(micros, _FIRST_LATE), FALSE)
    if not pc.any(is_late).as_py():
        return converted
    late_micros = micros.filter(is_late)
    changed_micros = change(to_numpy(late_micros.combine_chunks() if isinstance(late_micros, pa.ChunkedArray) else late_micros))
    return pc.replace_with_mask(converted, is_late, from_numpy(changed_micros).cast(converted.type))


def _shift(values: Any, seconds: int, target: pa.DataType) -> Any:
    """The times moved by a fixed number of seconds, in the type `target`."""
    return pc.add(values.cast(pa.int64()), scalar(seconds * 1_000_000, pa.int64())).cast(target)
