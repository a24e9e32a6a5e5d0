"""delta_py: the Delta Lake protocol as a library on pyarrow. It does not use Spark.

Names are imported when they are first used, so that a process that needs one module does not load them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delta_py.row_changes.write import write_delta
    from delta_py.table import DeltaTable

__all__ = ["DeltaTable", "write_delta"]


def __getattr__(name: str) -> Any:
    match name:
        case "DeltaTable":
            from delta_py.table import DeltaTable

            return DeltaTable
        case "write_delta":
            from delta_py.row_changes.write import write_delta

            return write_delta
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
