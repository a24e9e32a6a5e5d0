"""Entries of Spark's catalog with hostile texts: a Delta error, or the entry as it is, and never another location."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql.types import LongType, StructField, StructType

from delta_py import DeltaTable
from delta_py.errors import DeltaError
from delta_py.object_stores.open_store import open_store
from spark_plugin.data_source import DeltaSource
from spark_plugin.dataframe_api import catalog
from spark_plugin.options.read_options import CATALOG_KEY, catalog_entry, local_path
from spark_plugin.schema_conversion import to_spark_schema, with_metadata
from tests.fuzz.base_tables import made_tables
from tests.fuzz.cases import Case, Mutation, Outcome, fresh, observed
from tests.fuzz.odd_options import FALSE_FACTS, VICTIM, odd_case, odd_paths, odd_value
from tests.fuzz.odd_values import mutated_json
from tests.fuzz.options import ids_of

_OPTIONS = [
    "versionAsOf",
    "filter",
    "columns",
    "pydelta.files",
    "pydelta.schema",
    "pydelta.view",
    "paths",
    "x",
    "delta.appendOnly",
]
_STATEMENT = re.compile(
    r"CREATE TABLE (?:IF NOT EXISTS )?((?:`(?:[^`]|``)+`\.?)+) USING pydelta LOCATION '((?:[^'\\]|\\.)*)'", re.DOTALL
)

_Found = tuple[str, str]


class EntryTarget:
    """A table that is entered under a name, and Spark's description of the entry."""

    def __init__(self, directory: Path) -> None:
        self._table = made_tables(directory, "commits")["commits"]

    def run(self, case: Case) -> Outcome:
        rng, table = case.rng, str(self._table)
        place = fresh(case.place)
        kinds: dict[str, Callable[[random.Random, str], tuple[str, Callable[[], _Found]]]] = {
            **{"facts": _facts, "facts of ours": _facts_of_ours, "options": _options, "text of options": _text_of_options},
            **{"path in a name": _path_in_name, "name": _name, "path that is entered": _entered_path, "path": _path},
        }
        kind = rng.choice(list(kinds))
        description, use = kinds[kind](rng, table)
        return case.outcome(kind, Mutation(description[:400], True), observed(partial(_judged, use), place))


def _judged(use: Callable[[], _Found]) -> _Found:
    try:
        return use()
    except DeltaError as error:
        return "error", str(error)[:300]


# ---------------------------------------------------------------- SHOW TABLE EXTENDED


@dataclass(frozen=True)
class _Entry:
    """An entry, and Spark's description of it. location: as Spark writes it."""

    provider: str
    location: str
    comment: str | None
    properties: dict[str, str]
    storage: dict[str, str]
    column: str

    @classmethod
    def of(cls, provider: str, location: str, rng: random.Random) -> _Entry:
        texts = [rng.choice([None, "x", *FALSE_FACTS]) for _ in range(6)]
        properties = {texts[1] or "a": texts[2] or "b"} if rng.random() < 0.5 else {}
        storage = {texts[3] or "a": texts[4] or "b"} if rng.random() < 0.5 else {}
        return cls(provider, location, texts[0], properties, storage, texts[5] or "id")

    @property
    def text(self) -> str:
        facts: list[tuple[str, str | None]] = [
            *(("Catalog", "spark_catalog"), ("Database", "default"), ("Table", "t"), ("Owner", "root")),
            *(("Created Time", "Tue Nov 24 08:41:19 UTC 2026"), ("Last Access", "UNKNOWN"), ("Created By", "Spark 4.3.0")),
            *(("Type", "EXTERNAL"), ("Provider", self.provider), ("Comment", self.comment)),
            ("Table Properties", _told(self.properties)),
            *(("Statistics", "9 bytes, 1 rows"), ("Location", self.location), ("Storage Properties", _told(self.storage))),
            *(("Partition Provider", "Catalog"), ("Partition Columns", f"[`{self.column}`]")),
        ]
        column = self.column.encode("unicode_escape").decode()
        fact_lines = "".join(f"{name}: {value}\n" for name, value in facts if value is not None)
        return f"{fact_lines}Schema: root\n |-- {column}: long (nullable = true)\n\n"


def _told(values: dict[str, str]) -> str | None:
    return f"[{', '.join(f'{key}={value}' for key, value in values.items())}]" if values else None


def _spark(text: str, schema: StructType | None = None) -> Any:
    row = {"tableName": "t", "isTemporary": False, "information": text}
    statements: list[str] = []

    def sql(_session: Any, statement: str) -> Any:
        statements.append(statement)
        return SimpleNamespace(collect=lambda: [row] if "SHOW" in statement else [("Location", "file:/warehouse/default.db")])

    session_class = type("Session", (SimpleNamespace,), {"sql": sql})
    return session_class(
        catalog=SimpleNamespace(currentCatalog=lambda: "spark_catalog", currentDatabase=lambda: "default"),
        conf=SimpleNamespace(get=lambda _, default=None: default),
        table=lambda _: SimpleNamespace(schema=schema or StructType()),
        statements=statements,
    )


def _facts(rng: random.Random, table: str) -> tuple[str, Callable[[], _Found]]:
    """The description of an entry whose columns do not contain the location."""
    path = rng.choice(
        [table, f"{table} x", f"{table}\nFoo: b", f"{table}\nLocation: file:{VICTIM}", f"{table}, a: b", "s3://b/t"]
    )
    location = path if "://" in path else rng.choice([f"file:{path}", f"file://{path}", path])
    entry = _Entry.of("delta", location, rng)

    def use() -> _Found:
        found_table = catalog.find(_spark(entry.text), "t")
        assert found_table is not None
        if (found_table.provider, found_table.external) != ("delta", True):
            return "wrong", f"{found_table}"
        return (
            ("same" if found_table.path else "error", str(found_table))
            if found_table.path in (None, path)
            else ("wrong", str(found_table))
        )

    return repr(entry), use


def _facts_of_ours(rng: random.Random, table: str) -> tuple[str, Callable[[], _Found]]:
    """The columns contain the location; the location of the entry may have changed since."""
    moved = rng.random() < 0.3
    entry = _Entry.of("pydelta", f"file:{VICTIM if moved else table}", rng)
    text = catalog_entry({"provider": "pydelta", "path": f"file:{table}"})
    assert text is not None
    schema = with_metadata(StructType([StructField("id", LongType())]), CATALOG_KEY, text)

    def use() -> _Found:
        found_table = catalog.find(_spark(entry.text, schema), "t")
        assert found_table is not None
        expected_path = None if moved else table
        return (
            ("same", "")
            if (found_table.provider, found_table.path) == ("pydelta", expected_path)
            else ("wrong", f"{found_table} and not {expected_path}")
        )

    return f"{'moved ' if moved else ''}{entry!r}", use


# ---------------------------------------------------------------- options that an entry keeps


def _options(rng: random.Random, table: str) -> tuple[str, Callable[[], _Found]]:
    """As Spark passes them when the table is entered: including properties, and options twice."""
    entry_options = {"provider": "pydelta", "owner": "root", "path": rng.choice([table, f"file:{table}", f"file://{table}"])}
    for name in rng.sample(_OPTIONS, rng.choice([0, 1, 2])):
        name, value = odd_case(name, rng).lower(), odd_value(rng, "0", "id > 5", "id")
        entry_options |= {name: value, f"option.{name}": value} if rng.random() < 0.7 else {name: value}
    entry_options |= {rng.choice(["comment", "a", "x\ny", "option.", "option.x"]): odd_value(rng)}

    def use() -> _Found:
        source = DeltaSource(entry_options)
        schema = source.schema()
        text = schema.fields[0].metadata[CATALOG_KEY]
        if json.loads(text)["path"] != table:
            return "wrong", text
        return "different", f"{len(_rows(schema))} rows"

    return repr({key: value[:60] for key, value in entry_options.items()}), use


def _text_of_options(rng: random.Random, table: str) -> tuple[str, Callable[[], _Found]]:
    options = {"path": table, **{name: odd_value(rng) for name in rng.sample(_OPTIONS, rng.choice([0, 0, 1]))}}
    odd = mutated_json(json.dumps(options), rng)
    text = (
        odd.text
        if odd is not None
        else rng.choice(["", "[", "[]", "5", "null", '"x"', "[" * 100_000, '{"path":5}', '{"paths":5}'])
    )

    def use() -> _Found:
        schema = with_metadata(to_spark_schema(DeltaTable(table).struct_type), CATALOG_KEY, text)
        return "different", f"{len(_rows(schema))} rows"

    return repr(text[:200]), use


def _rows(schema: StructType) -> list[Any]:
    reader: Any = DeltaSource({}).reader(schema)
    return [id for part in reader.partitions() for batch in reader.read(part) for id in ids_of(batch)]


# ---------------------------------------------------------------- names and paths


def _path_in_name(rng: random.Random, table: str) -> tuple[str, Callable[[], _Found]]:
    path = rng.choice(odd_paths(table))
    name = rng.choice([f"delta.`{path.replace('`', '``')}`", f"DELTA.{path}", f"`pydelta`.`{path}`", path, f"a.{path}"])

    def use() -> _Found:
        found_path = catalog.path_in_name(name)
        return ("same", str(found_path)[:100]) if found_path in (None, path) else ("wrong", found_path[:200])

    return repr(name[:200]), use


def _name(rng: random.Random, table: str) -> tuple[str, Callable[[], _Found]]:
    part = partial(
        rng.choice, ["t", "T1", "default", "spark_catalog", "other", *FALSE_FACTS, "a.b", "\0", "x" * 100_000, "", "'", "%"]
    )
    name = ".".join(rng.choice(["{}", "`{}`"]).format(part()) for _ in range(rng.choice([1, 2, 3, 4])))

    def use() -> _Found:
        spark = _spark(_Entry.of("delta", f"file:{table}", random.Random(1)).text)
        full, path = catalog.full_name(spark, name), catalog.new_table_path(spark, name, None)
        table_name = full.rpartition(".")[2]
        is_plain = re.fullmatch(r"\w+", table_name, re.ASCII) and path == f"/warehouse/default.db/{table_name.lower()}"
        catalog.find(spark, name)
        return ("same", path) if is_plain else ("wrong", f"{full!r}, {path!r}")

    return repr(name[:200]), use


def _entered_path(rng: random.Random, table: str) -> tuple[str, Callable[[], _Found]]:
    path = rng.choice([*odd_paths(table), *FALSE_FACTS])

    def use() -> _Found:
        spark = _spark("")
        place = catalog.new_table_path(spark, "t", path)
        catalog.enter(spark, "t", place, "pydelta")
        statement = _STATEMENT.fullmatch(spark.statements[-1])
        if statement is None or re.sub(r"\\(.)", r"\1", statement[2], flags=re.DOTALL) != place or "${" in statement[0]:
            return "wrong", spark.statements[-1][:300]
        return "same", place[:100]

    return repr(path[:200]), use


def _path(rng: random.Random, table: str) -> tuple[str, Callable[[], _Found]]:
    path = rng.choice([*odd_paths(table), *FALSE_FACTS])

    def use() -> _Found:
        store = open_store(local_path(path))
        return "different", f"{len(list(store.list_from('_delta_log')))} files at {store.root[:100]}"

    return repr(path[:200]), use
