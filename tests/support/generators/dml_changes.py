"""Random DELETE, UPDATE and MERGE, as calls of a DeltaTable class (ours or delta-spark's), and their effect on a list of rows.

    change = random_change(random.Random(1), rows)
    after = change.after(rows)                     # rows, and the change feed
    change.run(DeltaTable, spark, path)

A condition is SQL and a Python function with the same three values: True, False and None for null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa

Row: TypeAlias = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.int32()),
        ("name", pa.string()),
        ("n", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("nested", pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
    ]
)
# Without it a client of Spark Connect accepts no table without rows.
SPARK_SCHEMA = "id long, part int, name string, n int, price decimal(10, 2), nested struct<a: long, b: array<string>>"


def new_row(random: Random, id: int | None) -> Row:
    return {
        "id": id,
        "part": random.choice([0, 1, 2, 2, None]),
        "name": random.choice([None, f"näme {id}", f"n{id}", ""]),
        "n": random.choice([None, random.randrange(-5, 20)]),
        "price": random.choice([None, Decimal(random.randrange(0, 4000)) / 100]),
        "nested": random.choice([None, {"a": random.randrange(30), "b": ["x", None]}, {"a": None, "b": []}]),
    }


def as_table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


# ---------------------------------------------------------------- conditions and values


@dataclass(frozen=True)
class Condition:
    """sql: with {p} before each column, for an alias. holds: True, False or None for null."""

    sql: str
    holds: Callable[[Row], bool | None]

    def text(self, alias: str = "") -> str:
        return self.sql.replace("{p}", f"{alias}." if alias else "")


def _compared(value: Any, compare: Callable[[Any], bool]) -> bool | None:
    return None if value is None else compare(value)


def _and(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _not(one: bool | None) -> bool | None:
    return None if one is None else not one


def simple_condition(random: Random) -> Condition:
    low, k = random.randrange(0, 40), random.randrange(3)
    some = sorted(random.sample(range(60), 4))
    listed, high, limit = ", ".join(map(str, some)), low + random.randrange(1, 15), random.randrange(-3, 15)
    return random.choice(
        [
            Condition(f"{{p}}id % 3 = {k}", lambda r: _compared(r["id"], lambda v: v % 3 == k)),
            Condition(f"{{p}}id BETWEEN {low} AND {high}", lambda r: _compared(r["id"], lambda v: low <= v <= high)),
            Condition(f"{{p}}id IN ({listed})", lambda r: _compared(r["id"], lambda v: v in some)),
            Condition(f"{{p}}part = {k}", lambda r: _compared(r["part"], lambda v: v == k)),
            Condition("{p}name IS NULL", lambda r: r["name"] is None),
            Condition("{p}id IS NOT NULL", lambda r: r["id"] is not None),
            Condition(f"{{p}}n > {limit}", lambda r: _compared(r["n"], lambda v: v > limit)),
            Condition(f"{{p}}price >= {low}.5", lambda r: _compared(r["price"], lambda v: v >= Decimal(low) + Decimal("0.5"))),
            Condition(f"{{p}}nested.a < {high}", lambda r: _compared((r["nested"] or {}).get("a"), lambda v: v < high)),
            Condition("length({p}name) > 2", lambda r: _compared(r["name"], lambda v: len(v) > 2)),
            Condition("coalesce({p}n, 0) % 2 = 0", lambda r: (r["n"] or 0) % 2 == 0),
            Condition("true", lambda r: True),
            Condition("false", lambda r: False),
        ]
    )


def condition(random: Random) -> Condition:
    one, other = simple_condition(random), simple_condition(random)
    both = Condition(f"({one.sql}) AND ({other.sql})", lambda r: _and(one.holds(r), other.holds(r)))
    either = Condition(f"({one.sql}) OR ({other.sql})", lambda r: _not(_and(_not(one.holds(r)), _not(other.holds(r)))))
    denied = Condition(f"NOT ({one.sql})", lambda r: _not(one.holds(r)))
    return random.choice([one, one, one, both, either, denied])


@dataclass(frozen=True)
class Value:
    """The new value of a column. sql: as in Condition. of: of the old row, and the source's row."""

    column: str
    sql: str
    of: Callable[[Row, Row], Any]


def _from(value: Any, make: Callable[[Any], Any]) -> Any:
    return None if value is None else make(value)


VALUES = (
    Value("name", "concat({p}name, '!')", lambda r, s: _from(r["name"], lambda v: v + "!")),
    Value("name", "NULL", lambda r, s: None),
    Value("name", "'new'", lambda r, s: "new"),
    Value("n", "{p}n + 1", lambda r, s: _from(r["n"], lambda v: v + 1)),
    Value("n", "cast({p}id AS int)", lambda r, s: r["id"]),
    Value("price", "{p}price + 1", lambda r, s: _from(r["price"], lambda v: v + 1)),
    Value("part", "({p}part + 1) % 3", lambda r, s: _from(r["part"], lambda v: (v + 1) % 3)),
    Value("nested.a", "{p}id * 10", lambda r, s: _from(r["id"], lambda v: v * 10)),
    Value("nested", "NULL", lambda r, s: None),
)
FROM_SOURCE = (
    *VALUES,
    Value("name", "s.name", lambda r, s: s["name"]),
    Value("n", "{p}n + s.n", lambda r, s: None if r["n"] is None or s["n"] is None else r["n"] + s["n"]),
    Value("nested", "s.nested", lambda r, s: s["nested"]),
    Value("part", "s.part", lambda r, s: s["part"]),
)


def values(random: Random, some: Sequence[Value]) -> tuple[Value, ...]:
    """One for each of some columns; not for a struct and a field of it."""
    chosen: dict[str, Value] = {}
    for value in random.sample(some, random.randrange(1, 4)):
        chosen.setdefault(value.column.split(".")[0], value)
    return tuple(chosen.values())


def assigned(row: Row, source: Row, assignments: Sequence[Value]) -> Row:
    new_row = dict(row)
    for value in assignments:
        name, _, leaf = value.column.partition(".")
        new_value = value.of(row, source)
        new_row[name] = {**(row[name] or {"a": None, "b": None}), leaf: new_value} if leaf else new_value
    return new_row


def texts(assignments: Sequence[Value], alias: str = "") -> dict[str, str]:
    return {value.column: value.sql.replace("{p}", f"{alias}." if alias else "") for value in assignments}


# ---------------------------------------------------------------- changes


@dataclass
class After:
    """rows: of the table. feed: (change type, row)."""

    rows: list[Row] = field(default_factory=list)
    feed: list[tuple[str, Row]] = field(default_factory=list)

    def keep(self, row: Row) -> None:
        self.rows.append(row)

    def delete(self, row: Row) -> None:
        self.feed.append(("delete", row))

    def update(self, row: Row, new: Row) -> None:
        self.rows.append(new)
        self.feed += [("update_preimage", row), ("update_postimage", new)]

    def insert(self, row: Row) -> None:
        self.rows.append(row)
        self.feed.append(("insert", row))

    def feed_table(self) -> pa.Table:
        """SCHEMA and _change_type."""
        kinds = pa.array([kind for kind, _ in self.feed], pa.string())
        return as_table([row for _, row in self.feed]).append_column("_change_type", kinds)

    def count(self, kind: str) -> int:
        return sum(change == kind for change, _ in self.feed)


@dataclass(frozen=True)
class Delete:
    condition: Condition | None

    def after(self, rows: Sequence[Row]) -> After:
        after = After()
        for row in rows:
            (after.delete if self.condition is None or self.condition.holds(row) else after.keep)(row)
        return after

    def run(self, tables: Any, spark: Any, path: str) -> None:
        tables.forPath(spark, path).delete(None if self.condition is None else self.condition.text())

    def __str__(self) -> str:
        return f"DELETE WHERE {self.condition and self.condition.text()}"


@dataclass(frozen=True)
class Update:
    condition: Condition | None
    values: tuple[Value, ...]

    def after(self, rows: Sequence[Row]) -> After:
        after = After()
        for row in rows:
            if self.condition is None or self.condition.holds(row):
                after.update(row, assigned(row, {}, self.values))
            else:
                after.keep(row)
        return after

    def run(self, tables: Any, spark: Any, path: str) -> None:
        tables.forPath(spark, path).update(None if self.condition is None else self.condition.text(), texts(self.values))

    def __str__(self) -> str:
        return f"UPDATE SET {texts(self.values)} WHERE {self.condition and self.condition.text()}"


@dataclass(frozen=True)
class Clause:
    """kind: matched, insert or by_source. condition: on the target's row; on the source's for an insert. values: () deletes; None
    takes all columns of the source."""

    kind: str
    condition: Condition | None
    values: tuple[Value, ...] | None

    def applies(self, row: Row) -> bool:
        return self.condition is None or self.condition.holds(row) is True


@dataclass(frozen=True)
class Merge:
    source: tuple[Row, ...]
    clauses: tuple[Clause, ...]

    def after(self, rows: Sequence[Row]) -> After:
        after = After()
        by_id = {row["id"]: row for row in self.source if row["id"] is not None}
        for row in rows:
            source = by_id.get(row["id"]) if row["id"] is not None else None
            clause = self._first("by_source" if source is None else "matched", row)
            if clause is None:
                after.keep(row)
            elif clause.values == ():
                after.delete(row)
            else:
                new = dict(source or {}) if clause.values is None else assigned(row, source or {}, clause.values)
                after.update(row, new)
        present = {row["id"] for row in rows}
        for row in self.source:
            clause = self._first("insert", row)
            if clause is not None and (row["id"] is None or row["id"] not in present):
                after.insert(row)
        return after

    def _first(self, kind: str, row: Row) -> Clause | None:
        return next((clause for clause in self.clauses if clause.kind == kind and clause.applies(row)), None)

    def run(self, tables: Any, spark: Any, path: str) -> None:
        source = spark.createDataFrame(as_table(self.source), SPARK_SCHEMA).alias("s")
        builder = tables.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        for clause in self.clauses:
            builder = self._with(builder, clause)
        builder.execute()

    @staticmethod
    def _with(builder: Any, clause: Clause) -> Any:
        when = None if clause.condition is None else clause.condition.text("s" if clause.kind == "insert" else "t")
        assignments = None if clause.values is None else texts(clause.values, "t")
        if clause.kind == "insert":
            return builder.whenNotMatchedInsertAll(when)
        if clause.kind == "by_source":
            by_source = builder.whenNotMatchedBySourceUpdate
            return by_source(when, assignments) if assignments else builder.whenNotMatchedBySourceDelete(when)
        if assignments is None:
            return builder.whenMatchedUpdateAll(when)
        return builder.whenMatchedUpdate(when, assignments) if assignments else builder.whenMatchedDelete(when)

    def __str__(self) -> str:
        clauses = [
            (c.kind, c.condition and c.condition.text("t"), "all" if c.values is None else texts(c.values, "t"))
            for c in self.clauses
        ]
        return f"MERGE {[row['id'] for row in self.source]} {clauses}"


Change: TypeAlias = Delete | Update | Merge


def random_merge(random: Random, rows: Sequence[Row]) -> Merge:
    ids = [row["id"] for row in rows if row["id"] is not None]
    chosen = set(random.sample(ids, min(len(ids), random.randrange(6)))) | set(random.sample(range(60, 90), random.randrange(4)))
    source = [new_row(random, id) for id in sorted(chosen)] + [new_row(random, None) for _ in range(random.randrange(2))]
    clauses: list[Clause] = []
    for kind, most in (("matched", 2), ("insert", 1), ("by_source", 2)):
        for number in reversed(range(random.randrange(most + 1))):
            when = condition(random) if number else random.choice([None, condition(random)])
            clauses.append(Clause(kind, when, _clause_values(random, kind)))
    return Merge(tuple(source), tuple(clauses) or (Clause("insert", None, None),))


def _clause_values(random: Random, kind: str) -> tuple[Value, ...] | None:
    if kind == "insert":
        return None
    if kind == "by_source":
        return random.choice([(), values(random, VALUES)])
    return random.choice([(), None, values(random, FROM_SOURCE), values(random, FROM_SOURCE)])


def random_change(random: Random, rows: Sequence[Row]) -> Change:
    """Rarely one that deletes most of the rows, or changes none."""
    for _ in range(10):
        change = _any_change(random, rows)
        after = change.after(rows)
        if (after.feed and 2 * len(after.rows) >= len(rows)) or random.random() < 0.1:
            break
    return change


def _any_change(random: Random, rows: Sequence[Row]) -> Change:
    kind = random.choice(["delete", "update", "update", "merge", "merge"])
    when = random.choice([None, *(condition(random) for _ in range(9))])
    if kind == "delete":
        return Delete(when)
    return Update(when, values(random, VALUES)) if kind == "update" else random_merge(random, rows)


def counts(change: Change, after: After) -> Mapping[str, int]:
    """Metrics of the history that count rows."""
    deleted, updated, inserted = (after.count(kind) for kind in ("delete", "update_postimage", "insert"))
    if isinstance(change, Delete):
        return {"numDeletedRows": deleted}
    if isinstance(change, Update):
        return {"numUpdatedRows": updated}
    return {"numTargetRowsDeleted": deleted, "numTargetRowsUpdated": updated, "numTargetRowsInserted": inserted}
