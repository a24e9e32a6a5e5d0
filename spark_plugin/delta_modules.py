"""The modules of delta-spark, made of pydelta (as_delta.py)."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pyspark.sql import SparkSession

from delta_py.release import own_version
from spark_plugin import exceptions, tables
from spark_plugin.sql_catalog.delta_names import DELTA


class MakeDeltaModules:
    """A value whose unpickling makes the modules, for the processes that run functions of foreachBatch over Spark Connect."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return make_delta_modules, ()


def make_delta_modules() -> None:
    """Put the modules into sys.modules, where all later imports find them.

    Raises ImportError, and changes nothing, if delta-spark or another package of the name `delta` is installed.
    """
    _refuse_other_package()
    _make_modules()


def configure_spark_with_delta_pip(
    spark_session_builder: SparkSession.Builder, extra_packages: Sequence[str] | None = None
) -> SparkSession.Builder:
    """Return the builder, as it is: pydelta needs no jar of delta-spark. extra_packages: Maven coordinates of other jars."""
    if extra_packages:
        return spark_session_builder.config("spark.jars.packages", ",".join(extra_packages))
    return spark_session_builder


def _refuse_other_package() -> None:
    """Raise ImportError if a module or package `delta` exists that this module did not make."""
    existing_module = sys.modules.get(DELTA)
    spec = importlib.util.find_spec(DELTA) if existing_module is None else existing_module.__spec__
    origin = None if spec is None else spec.origin
    if existing_module is None and origin is None:  # no such module, or only a folder of this name next to the script
        return
    if origin == __file__:  # make_delta_modules has made the module before
        return
    raise ImportError(
        f"spark_plugin.as_delta would make the module delta, and there is one at {origin}. Nothing was changed. Remove "
        "delta-spark (pip uninstall delta-spark) to run its scripts on pydelta. Or leave out import spark_plugin.as_delta, and "
        "use spark_plugin.DeltaTable next to delta-spark.",
        name=DELTA,
    )


def _make_modules() -> None:
    release: dict[str, Any] = {"__version__": own_version()}
    names = {"DeltaTable": tables.DeltaTable, "configure_spark_with_delta_pip": configure_spark_with_delta_pip}
    _make_package(
        DELTA,
        {
            "tables": tables,
            "exceptions": exceptions,
            "pip_utils": _make_module(f"{DELTA}.pip_utils", configure_spark_with_delta_pip=configure_spark_with_delta_pip),
            "version": _make_module(f"{DELTA}.version", **release),
            "connect": _make_package(
                f"{DELTA}.connect", {"tables": tables, "exceptions": exceptions}, {"DeltaTable": tables.DeltaTable}
            ),
        },
        names | release,
    )


def _make_package(name: str, modules: Mapping[str, ModuleType], public: Mapping[str, object]) -> ModuleType:
    """Make a package and put it and its modules into sys.modules. modules: its modules, by name. public: what it exports."""
    package = _make_module(name, is_package=True, **modules, **public, __all__=sorted(public), __doc__=__doc__)
    sys.modules |= {name: package} | {f"{name}.{module_name}": module for module_name, module in modules.items()}
    return package


def _make_module(name: str, *, is_package: bool = False, **members: object) -> ModuleType:
    """Make a module with these members. Its origin is this file, by which _refuse_other_package recognizes it."""
    module = importlib.util.module_from_spec(ModuleSpec(name, None, origin=__file__, is_package=is_package))
    vars(module).update(members)
    return module
