"""Functions of spark_plugin by their names, imported when they are first needed.

    run = function_named("statements.parsed.run_parsed")

Tables of handlers use names where an import would be a circle, or would make each session import modules that few sessions need.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


@cache
def function_named(name: str) -> Callable[..., Any]:
    """Return a function of spark_plugin, and import its module if needed. name: `module.function` or `folder.module.function`."""
    module, _, function = name.rpartition(".")
    imported: Callable[..., Any] = getattr(import_module(f"spark_plugin.{module}"), function)
    return imported
