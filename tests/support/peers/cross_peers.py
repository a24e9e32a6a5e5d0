"""Steps of cross_steps.py, done by delta-spark on one copy of a table and by pydelta on another one. Cross does them, and
compares.

    cross = Cross(spark, folder, definition, rng, again="...")
    cross.run(12)

Afterwards both copies must be the same in everything that a reader may see. A random one of the two is the table of the next
step, so each continues after the other; and both read it alike.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_py import DeltaTable, write_delta
from delta_py.errors import DeltaError
from tests.support.generators.cross_steps import (
    KEY,
    Checkpoint,
    Definition,
    Sql,
    State,
    Step,
    Write,
    described,
    draw_definition,
    draw_step,
)
from tests.support.oracles.rows import difference
from tests.support.peers.merge_peers import condition_of

SOURCES = {"ours": "pydelta", "theirs": "delta"}
MORE_EVERY = 4
"""After so many steps DESCRIBE DETAIL is asked for; and deltalake reads the table, where it has no feature that it lacks."""
LACKED = frozenset({"columnMapping", "deletionVectors", "typeWidening", "v2Checkpoint"})
PLAIN_OPTIONS = {
    "mergeSchema": ("merge_schema", lambda text: text == "true"),
    "overwriteSchema": ("overwrite_schema", lambda text: text == "true"),
    "replaceWhere": ("replace_where", str),
    "partitionOverwriteMode": ("partition_overwrite_mode", str),
    "txnAppId": ("txn_app_id", str),
    "txnVersion": ("txn_version", int),
}
# Random values or times.
_OWN = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
    "delta.inCommitTimestampEnablementTimestamp",
)
_TYPE_CHANGES = "delta.typeChanges"
_OWN_OF_FIELDS = ("delta.columnMapping.physicalName", "delta.identity.highWaterMark", "parquet.field.nested.ids")


LINES = 12
"""Of an error: Spark's have the stack of the JVM."""


class Differs(AssertionError):
    pass


@dataclass(frozen=True)
class Known:
    """Steps that only one of both refuses, or that they refuse differently, for a reason: a pattern of the step's text, and the
    conditions; None for none."""

    step: str
    ours: str | None
    theirs: str | None
    reason: str

    def is_so(self, step: Step, ours: str | None, theirs: str | None) -> bool:
        return (self.ours, self.theirs) == (ours, theirs) and re.search(self.step, str(step)) is not None


def take(spark: SparkSession, side: str, path: str, step: Step) -> str | None:
    """The condition if the step is refused."""
    try:
        match step:
            case Sql(text):
                spark.sql(text.replace("{t}", f"{SOURCES[side]}.`{path}`")).collect()
            case Write() if side == "ours" and step.plain:
                options = {PLAIN_OPTIONS[name][0]: PLAIN_OPTIONS[name][1](value) for name, value in step.options.items()}
                write_delta(path, spark.sql(step.rows).toArrow(), mode=step.mode, **options)  # type: ignore[arg-type]
            case Write():
                writer = spark.sql(step.rows).coalesce(1).write.format(SOURCES[side])
                writer.mode(step.mode).options(**step.options).save(path)
            case Checkpoint() if side == "ours":
                DeltaTable(path).checkpoint()
            case Checkpoint():
                log, none = spark._jvm.org.apache.spark.sql.delta.DeltaLog, spark._jvm.scala.Option.empty()
                log = log.forTable(spark._jsparkSession, path)
                log.checkpoint(log.update(False, none, none), none)
    except DeltaError as error:
        return error.error_class
    except (PySparkException, Py4JError) as error:
        return condition_of(error) or f"no condition: {str(error)[:600]}"
    return None


def committed(path: str, since: int) -> dict[str, Any]:
    """The commits of a step, without random values, and without the numbers of identity columns."""
    table = DeltaTable(path)
    metadata, protocol = table.metadata, table.protocol
    facts: dict[str, Any] = {
        "version": table.version,
        "schema": _schema(metadata.schema_string),
        "partition columns": metadata.partition_columns,
        "properties": {name: _condition(name, value) for name, value in metadata.configuration.items() if name not in _OWN},
        "protocol": protocol,
    }
    if table.version > since:
        commits = table.history(limit=table.version - since).to_pylist()
        facts["history"] = [(one["operation"], one["isBlindAppend"]) for one in commits]
    return facts


def _condition(name: str, value: str) -> str:
    """delta-spark puts a blank between any two tokens of a constraint."""
    return value.replace(" ", "") if name.startswith("delta.constraints.") else value


def _schema(text: str) -> Any:
    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(part) for name, part in value.items() if name not in _OWN_OF_FIELDS}
        return [without(part) for part in value] if isinstance(value, list) else value

    return without(json.loads(text))


def first_difference(ours: Any, theirs: Any, at: str = "") -> str:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted({*ours, *theirs}):
            if ours.get(name) != theirs.get(name):
                return first_difference(ours.get(name), theirs.get(name), f"{at}.{name}")
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for n, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            if mine != other:
                return first_difference(mine, other, f"{at}[{n}]")
    return f"{at} ours {ours}, theirs {theirs}"


def _has_feed(before: State, after: State) -> bool:
    """Whether the commits between the two states have a feed. If they changed the partition columns, ours refuses it: removed
    rows have no values for the new ones. If RESTORE brought narrower types back, the values of removed rows may not fit them."""
    change_counts = {one.name: len(one.metadata.get(_TYPE_CHANGES, ())) for one in after.schema}
    if any(len(one.metadata.get(_TYPE_CHANGES, ())) > change_counts.get(one.name, 0) for one in before.schema):
        return False
    return all(one.is_on("enableChangeDataFeed") for one in (before, after)) and before.partition_by == after.partition_by


def changes_of(path: str, first: int, leave: list[str]) -> pa.Table:
    feed = DeltaTable(path).changes(starting_version=first).read_all()
    return feed.drop_columns([name for name in ["_commit_timestamp", *leave] if name in feed.column_names])


@dataclass
class Cross:
    """One table and its changes. again: the command that replays it. known: steps that the two may refuse differently."""

    spark: SparkSession
    folder: Path
    definition: Definition
    rng: random.Random
    again: str
    known: Sequence[Known] = ()
    steps: list[tuple[str, Step]] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)
    ids: list[tuple[Any, ...]] | None = None
    path: str = ""

    def run(self, count: int) -> None:
        try:
            self._create()
            for number in range(count):
                self._step(number)
            self._travel()
            if self.unlike:
                raise Differs("\n".join(["refused unlike:", *self.unlike]))
        except Exception as error:
            shown = "\n".join(str(error).splitlines()[:LINES])
            raise Differs(f"{shown}\n{self.again}\n{described(self.definition, self.steps)}") from error
        finally:
            # delta-spark treats each step as a separate table, and would cache all of them until the heap is full.
            self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]

    def _create(self) -> None:
        """If both refuse a definition in the same way, another one is drawn."""
        both = {side: str(self.folder / f"0-{side}") for side in SOURCES}
        create = {side: Sql(self.definition.sql(SOURCES[side])) for side in SOURCES}
        refusals = {side: take(self.spark, side, path, create[side]) for side, path in both.items()}
        if len(set(refusals.values())) > 1:
            raise Differs(f"CREATE TABLE: {refusals}")
        if any(refusals.values()):
            self.definition = draw_definition(self.rng)
            self._create()
            return
        self._compare(both, -1)
        self.path = both[self.rng.choice(list(SOURCES))]

    def _step(self, number: int) -> None:
        state = State.of(self.path)
        step = draw_step(self.rng, state)
        next_side = self.rng.choice(list(SOURCES))
        self.steps.append((next_side, step))
        both = {side: str(self.folder / f"{number + 1}-{side}") for side in SOURCES}
        for path in both.values():
            shutil.copytree(self.path, path)
        refusals = {side: take(self.spark, side, path, step) for side, path in both.items()}
        if any(refusals.values()):
            self._compare_refusals(step, refusals, both, state)
            next_side = "ours" if refusals["ours"] is not None else "theirs"  # nothing was done there
        else:
            self._compare(both, state.version, step)
        for side, path in both.items():
            if side != next_side:
                shutil.rmtree(path)
        shutil.rmtree(self.path)
        self.path = both[next_side]
        if not any(refusals.values()):
            self._read_by_both(state, number)
            before, self.ids = self.ids, self._row_ids() if State.of(self.path).is_on("enableRowTracking") else None
            if before is not None and self.ids is not None and step.keeps_rows:
                _compare_row_ids(before, self.ids)

    def _compare_refusals(
        self, step: Step, refusals: Mapping[str, str | None], both: Mapping[str, str], before: State
    ) -> None:
        ours, theirs = refusals["ours"], refusals["theirs"]
        for side, refusal in refusals.items():
            if refusal is not None and DeltaTable(both[side]).version != before.version:
                raise Differs(f"{side} refused the step, {refusal}, and committed")
        if ours != theirs and not any(one.is_so(step, ours, theirs) for one in self.known):
            self.unlike.append(f"step {len(self.steps)}: ours {ours}, theirs {theirs}")  # nothing changed, so the others continue

    def _compare(self, both: Mapping[str, str], before: int, step: Step | None = None) -> None:
        ours, theirs = (committed(both[side], before) for side in ("ours", "theirs"))
        new_commits = (ours["version"] - before, theirs["version"] - before)
        # An ALTER that changes nothing is not a commit in pydelta. Our OPTIMIZE rewrites a file with many deleted rows even if it
        # is the only one; delta-spark's sometimes does not.
        if new_commits == (0, 1) or (new_commits == (1, 0) and str(step).startswith("OPTIMIZE")):
            theirs = {name: value for name, value in theirs.items() if name not in ("version", "history")}
        for name in theirs:
            if ours.get(name) != theirs[name]:
                raise Differs(f"{name} differs: {first_difference(ours.get(name), theirs[name])}")
        state = State.of(both["theirs"])
        columns = [name for name in state.schema.names if name not in state.identity]
        rows = [DeltaTable(both[side]).to_arrow(columns=columns) for side in ("theirs", "ours")]
        if (problem := difference(*rows)) is not None:
            raise Differs(f"rows differ: {problem}")
        if before >= 0 and all(new_commits) and _has_feed(State.of(self.path), state):
            feeds = [changes_of(both[side], before + 1, state.identity) for side in ("theirs", "ours")]
            if (problem := difference(*feeds)) is not None:
                raise Differs(f"change feeds differ: {problem}")

    def _read_by_both(self, before: State, number: int) -> None:
        table = DeltaTable(self.path)
        table.snapshot.check_integrity()
        theirs, ours = (self.spark.read.format(SOURCES[side]).load(self.path) for side in ("theirs", "ours"))
        if theirs.schema != ours.schema:
            raise Differs(f"schemas are read unlike: ours {ours.schema.simpleString()}, theirs {theirs.schema.simpleString()}")
        rows = theirs.toArrow()
        for read in (table.to_arrow(), *([ours.toArrow()] if number % 2 else [])):
            if (problem := difference(rows, read)) is not None:
                raise Differs(f"rows are read unlike: {problem}")
        state = State.of(self.path)
        if number % MORE_EVERY == 0 or state.configuration != before.configuration:
            details = [self._detail(side) for side in SOURCES]
            if details[0] != details[1]:
                raise Differs(f"DESCRIBE DETAIL differs: {first_difference(*details)}")
        if state.version > before.version and _has_feed(before, state):
            options = {"readChangeFeed": "true", "startingVersion": str(before.version + 1)}
            feed = self.spark.read.format("delta").options(**options).load(self.path).toArrow()
            read = DeltaTable(self.path).changes(starting_version=before.version + 1).read_all().select(feed.column_names)
            if (problem := difference(feed, read)) is not None:
                raise Differs(f"change feeds are read unlike: {problem}")
        chars = any(one.metadata.get("__CHAR_VARCHAR_TYPE_STRING", "").startswith("char") for one in state.schema)
        if number % MORE_EVERY == 0 and not chars and not state.features & LACKED:  # it does not pad CHAR
            query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(self.path)).execute("select * from t")
            table_rows = table.to_arrow()
            read = pa.table(query.read_all()).select(table_rows.column_names).cast(table_rows.schema)
            if (problem := difference(table_rows, read)) is not None:
                raise Differs(f"deltalake reads unlike: {problem}")

    def _travel(self) -> None:
        newest = DeltaTable(self.path).version
        for version in self.rng.sample(range(newest + 1), min(newest + 1, 3)):
            theirs = self.spark.read.format("delta").option("versionAsOf", version).load(self.path).toArrow()
            if (problem := difference(theirs, DeltaTable(self.path, version=version).to_arrow())) is not None:
                raise Differs(f"version {version} is read unlike: {problem}")

    def _detail(self, side: str) -> dict[str, Any]:
        row = self.spark.sql(f"DESCRIBE DETAIL {SOURCES[side]}.`{self.path}`").first().asDict()
        names = ("id", "partitionColumns", "clusteringColumns", "numFiles", "sizeInBytes", "properties", "minReaderVersion")
        return {**{name: row[name] for name in (*names, "minWriterVersion")}, "tableFeatures": sorted(row["tableFeatures"] or [])}

    def _row_ids(self) -> list[tuple[Any, ...]]:
        columns = [KEY, "_metadata.row_id", "_metadata.row_commit_version"]
        theirs = self.spark.read.format("delta").load(self.path).select(*columns).toArrow()
        ours = self.spark.read.format("pydelta").option("metadataColumn", "true").load(self.path).select(*columns).toArrow()
        if (problem := difference(theirs, ours)) is not None:
            raise Differs(f"row ids are read unlike: {problem}")
        ids = ours["row_id"].to_pylist()
        if len(set(ids)) != len(ids) or None in ids:
            raise Differs(f"row ids are not unique: {sorted(ids, key=str)}")
        return [tuple(row.values()) for row in ours.to_pylist()]


def _compare_row_ids(before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]) -> None:
    old, new = ({key: row for key, row, _ in rows} for rows in (before, after))
    counts = Counter(key for rows in (before, after) for key, *_ in rows)
    moved = {key: (row, new[key]) for key, row in old.items() if key in new and counts[key] == 2 and new[key] != row}
    if moved:
        raise Differs(f"row ids were not kept (key: before, after): {moved}")
