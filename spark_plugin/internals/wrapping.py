"""Methods of Spark's classes, wrapped once in a process, and the original methods.

The originals are stored here and not looked up from the methods: another library may wrap them too, and then the `__wrapped__` of
its wrapper is our wrapper.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from spark_plugin.internals.session_adapter import adapter_of

Method = Callable[..., Any]

_originals: dict[tuple[type[Any], str], Method] = {}


def wrap(cls: type[Any], name: str, make: Callable[[Method], Method]) -> None:
    """Replace a method of a class by make(method). A second call does nothing, unless somebody put the original method back."""
    current_method = getattr(cls, name)
    # The first call stores the original. If the current method is another one later, it is our wrapper, or wraps it, and stays.
    if _originals.setdefault((cls, name), current_method) is current_method:
        setattr(cls, name, wraps(current_method)(make(current_method)))


def original(cls: type[Any], name: str) -> Method:
    """Return the method before it was wrapped, in the class or in one of its bases."""
    originals = (_originals.get((base, name)) for base in cls.__mro__)
    method: Method = next((method for method in originals if method is not None), getattr(cls, name))
    return method


def spark_sql(spark: Any, text: str) -> Any:
    """Run Spark's own `sql`, for statements that come from pydelta and must not be routed."""
    frame = adapter_of(spark).sql_below_router(text)
    return original(type(spark), "sql")(spark, text) if frame is None else frame
