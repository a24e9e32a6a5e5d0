"""The statements that Spark's own parser does not know, and those that it mistakes for others: converts text to a request.

    parse_utility("OPTIMIZE shop.sales WHERE day = '2024-01-01' ZORDER BY (id)")
    # Optimize(TableName(("shop", "sales")), where="day = '2024-01-01'", z_order=("`id`",))

None is the result for a text that begins like none of them: Spark runs it. Words are read in any case. Parts that delta-spark
accepts in any order are accepted in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from delta_py.types.names import quoted
from spark_plugin.sql.syntax import SyntaxFault, TableName, Words


@dataclass(frozen=True, slots=True)
class Version:
    """VERSION AS OF or TIMESTAMP AS OF; the newest version if both are None."""

    version: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Optimize:
    """OPTIMIZE. full: also files that are clustered already. where: a condition as SQL; None for the whole table. z_order: names
    as SQL text; empty for no Z-order."""

    table: TableName
    full: bool = False
    where: str | None = None
    z_order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vacuum:
    """VACUUM. lite: None if the statement has neither LITE nor FULL. inventory: a table, or the text of a query, that lists the
    files of the directory. hours: of RETAIN; None for the table's retention."""

    table: TableName
    lite: bool | None = None
    inventory: TableName | str | None = None
    hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class History:
    table: TableName
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Detail:
    table: TableName


@dataclass(frozen=True, slots=True)
class Restore:
    """RESTORE. to: the version to restore. ignores_missing_files: None to use the session's setting."""

    table: TableName
    to: Version
    ignores_missing_files: bool | None = None


@dataclass(frozen=True, slots=True)
class Convert:
    """CONVERT TO DELTA. statistics: false for NO STATISTICS. partitions: partition columns as DDL, or None."""

    table: TableName
    statistics: bool = True
    partitions: str | None = None


@dataclass(frozen=True, slots=True)
class Generate:
    table: TableName
    mode: str


@dataclass(frozen=True, slots=True)
class Reorg:
    """REORG TABLE. where: SQL; None for the whole table. purge: true for APPLY (PURGE), false for UPGRADE UNIFORM."""

    table: TableName
    where: str | None = None
    purge: bool = True


@dataclass(frozen=True, slots=True)
class Fsck:
    """check_data: only CALL can set it, no statement can."""

    table: TableName
    dry_run: bool = False
    check_data: bool = False


@dataclass(frozen=True, slots=True)
class Clone:
    """table: the new one. replaces: CREATE OR REPLACE, and REPLACE, which requires an existing table. partitions: of Parquet
    files, as DDL."""

    table: TableName
    source: TableName
    shallow: bool
    of: Version = field(default_factory=Version)
    creates: bool = True
    replaces: bool = False
    if_not_exists: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    partitions: str | None = None


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """ALTER TABLE ADD CONSTRAINT. check: the condition as SQL text."""

    table: TableName
    name: str
    check: str


@dataclass(frozen=True, slots=True)
class DropConstraint:
    table: TableName
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddFeature:
    table: TableName
    feature: str


@dataclass(frozen=True, slots=True)
class DropFeature:
    table: TableName
    feature: str
    truncate_history: bool = False


@dataclass(frozen=True, slots=True)
class ClusterBy:
    """columns: names as SQL text; empty for CLUSTER BY NONE."""

    table: TableName
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SyncIdentity:
    table: TableName
    column: str


@dataclass(frozen=True, slots=True)
class CreateIndex:
    table: TableName
    name: str
    columns: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    table: TableName
    name: str
    if_exists: bool = False


Utility: TypeAlias = (
    Optimize
    | Vacuum
    | History
    | Detail
    | Restore
    | Convert
    | Generate
    | Reorg
    | Fsck
    | Clone
    | AddConstraint
    | DropConstraint
    | AddFeature
    | DropFeature
    | ClusterBy
    | SyncIdentity
    | CreateIndex
    | DropIndex
)


def parse_utility(text: str, args: Any = None) -> Utility | None:
    """Parse a statement. Returns None for text that is none of these statements. args: values of parameters, as `sql` takes them.

    Raises SyntaxFault for a text that begins like one of these statements but does not continue like it.
    """
    words = None
    try:
        words = Words(text, args)
        return _utility(words)
    except SyntaxFault:
        if words is not None and words.is_sure:
            raise
        return None  # Spark reports the error, or reads the text as another statement


def _utility(words: Words) -> Utility | None:
    """Parse a statement by the first beginning in _BEGINNINGS that fits. None if none fits, or if the rest shows that the
    statement is Spark's."""
    parse = next((parse for beginning, parse in _BEGINNINGS if words.take(*beginning)), None)
    utility = None if parse is None else parse(words)
    if utility is not None:
        words.sure()
        words.end()
    return utility


# ---------------------------------------------------------------- statements on every table
# Each function parses the words after the beginning that _BEGINNINGS has for it.


def _optimize(words: Words) -> Optimize:
    words.sure()
    after_name = ("FULL", "WHERE", "ZORDER", ".", ";")
    # OPTIMIZE FULL t and OPTIMIZE t FULL are the same. FULL before one of these words is the table's name.
    is_full = words.at("FULL") and words.remaining_count > 1 and not any(words.at(word, ahead=1) for word in after_name)
    if is_full:
        words.expect("FULL")
    table = words.table()
    is_full = is_full or words.take("FULL")
    where = words.text_until(("ZORDER", "BY")) if words.take("WHERE") else None
    z_order = _columns(words, may_lack_parentheses=True) if words.take("ZORDER", "BY") else ()
    return Optimize(table, is_full, where, z_order)


def _vacuum(words: Words) -> Vacuum:
    words.sure()
    vacuum = Vacuum(words.table())
    # The clauses can have any order; each can occur once.
    while not words.is_over():
        if vacuum.lite is None and (words.at("LITE") or words.at("FULL")):
            vacuum = replace(vacuum, lite=words.take("LITE"))
            words.take("FULL")
        elif vacuum.inventory is None and words.take("USING"):
            words.expect("INVENTORY")
            vacuum = replace(vacuum, inventory=words.in_parentheses() if words.at("(") else words.table())
        elif vacuum.hours is None and words.take("RETAIN"):
            vacuum = replace(vacuum, hours=words.number_value())
            words.expect("HOURS")
        elif not vacuum.dry_run and words.take("DRY"):
            words.expect("RUN")
            vacuum = replace(vacuum, dry_run=True)
        else:
            words.fault()
    return vacuum


def _history(words: Words) -> History:
    return History(words.table(), words.whole_number() if words.take("LIMIT") else None)


def _detail(words: Words) -> Detail:
    return Detail(words.table())


def _restore(words: Words) -> Restore:
    words.sure()
    # TABLE is a keyword here, unless the table itself has this name: RESTORE table TO ..., RESTORE table.name TO ...
    if words.at("TABLE") and not words.at(".", ahead=1) and not words.at("TO", ahead=1):
        words.expect("TABLE")
    table = words.table()
    words.take("TO")
    to = _version(words)
    if to is None:
        words.fault("expected VERSION AS OF or TIMESTAMP AS OF")
    return Restore(table, to)


def _version(words: Words) -> Version | None:
    """Parse VERSION AS OF or TIMESTAMP AS OF, in all spellings; None if neither is next."""
    ahead = 1 if words.at("FOR") else 0
    for word in ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
        if words.at(word, "AS", "OF", ahead=ahead):
            words.take("FOR")
            words.expect(word, "AS", "OF")
            if word in ("TIMESTAMP", "SYSTEM_TIME"):
                return Version(timestamp=words.string())
            return Version(words.whole_number_or_text())
    return None


def _convert(words: Words) -> Convert:
    words.sure()
    table, statistics = words.table(), True
    if words.take("NO"):
        words.expect("STATISTICS")
        statistics = False
    return Convert(table, statistics, _partitioned_by(words))


def _partitioned_by(words: Words) -> str | None:
    """Parse PARTITIONED BY (...), and return the columns as DDL; None if it is not next."""
    if not words.take("PARTITIONED"):
        return None
    words.expect("BY")
    return words.in_parentheses()


def _generate(words: Words) -> Generate:
    words.sure()
    mode = words.part()
    words.expect("FOR", "TABLE")
    return Generate(words.table(), mode)


def _reorg(words: Words) -> Reorg:
    words.sure()
    table = words.table()
    where = words.text_until(("APPLY", "(")) if words.take("WHERE") else None
    words.expect("APPLY", "(")
    if words.take("PURGE"):
        words.expect(")")
        return Reorg(table, where)
    words.expect("UPGRADE", "UNIFORM")
    words.in_parentheses()
    words.expect(")")
    return Reorg(table, where, purge=False)


def _fsck(words: Words) -> Fsck:
    words.sure()
    table, dry_run = words.table(), words.take("DRY")
    if dry_run:
        words.expect("RUN")
    return Fsck(table, dry_run)


# ---------------------------------------------------------------- CLONE


def _create(words: Words) -> Clone | CreateIndex | None:
    """Parse CREATE INDEX, or a CREATE TABLE that makes a clone; None for another CREATE."""
    if words.take("INDEX"):
        return _create_index(words)
    replaces = words.take("OR", "REPLACE")
    return _clone(words, replaces=replaces) if words.take("TABLE") else None


def _replace(words: Words) -> Clone | None:
    return _clone(words, creates=False, replaces=True) if words.take("TABLE") else None


def _clone(words: Words, *, creates: bool = True, replaces: bool) -> Clone | None:
    """Parse the rest of a statement that may make a clone; None if it makes none."""
    if_not_exists = words.take("IF", "NOT", "EXISTS")
    table = words.table()
    shallow = words.take("SHALLOW", "CLONE")
    if not (shallow or words.take("DEEP", "CLONE") or words.take("CLONE")):
        return None  # Spark's CREATE TABLE
    words.sure()
    source = words.table()
    version, partitions = _version(words) or Version(), _partitioned_by(words)
    clone = Clone(table, source, shallow, version, creates, replaces, if_not_exists, partitions=partitions)
    if words.take("TBLPROPERTIES"):
        clone = replace(clone, properties=properties_of(words))
    return replace(clone, location=words.string()) if words.take("LOCATION") else clone


def properties_of(words: Words) -> dict[str, str]:
    """Parse (name = value, ...), as after TBLPROPERTIES. The equals sign may be missing."""
    properties: dict[str, str] = {}
    words.expect("(")
    while True:
        key = words.string(alone=True) if words.at_text() else ".".join(words.name())
        words.take("=")
        properties[key] = _property_value(words)
        if not words.take(","):
            words.expect(")")
            return properties


def _property_value(words: Words) -> str:
    if words.at_text():
        return words.string()
    for word in ("TRUE", "FALSE"):
        if words.take(word):
            return word.lower()
    return words.number()


# ---------------------------------------------------------------- ALTER TABLE


def _alter(words: Words) -> Utility | None:
    """Parse the rest of ALTER TABLE. None for the forms that Spark's own parser knows."""
    table = words.table()
    if words.take("ADD", "CONSTRAINT"):
        return _add_constraint(words, table)
    if words.take("DROP", "CONSTRAINT"):
        words.sure()
        if_exists = words.take("IF", "EXISTS")
        return DropConstraint(table, words.part(), if_exists)
    if words.at("ADD", "FEATURE") or words.at("DROP", "FEATURE"):
        words.sure()
    if words.take("ADD", "FEATURE"):
        return AddFeature(table, _feature(words))
    if words.take("DROP", "FEATURE"):
        return DropFeature(table, _feature(words), words.take("TRUNCATE", "HISTORY"))
    if words.take("CLUSTER", "BY"):
        return ClusterBy(table, () if words.take("NONE") else _columns(words))
    return _sync_identity(words, table) if words.take("ALTER") or words.take("CHANGE") else None


def _add_constraint(words: Words, table: TableName) -> AddConstraint | None:
    """Parse the rest of ADD CONSTRAINT. None for a constraint that is no CHECK: Spark gets it."""
    name = words.part()
    return AddConstraint(table, name, words.in_parentheses()) if words.take("CHECK") else None


def _feature(words: Words) -> str:
    return words.string() if words.at_text() else words.part()


def _sync_identity(words: Words, table: TableName) -> SyncIdentity | None:
    """Parse the rest of ALTER COLUMN. None unless it is SYNC IDENTITY; Spark knows the other forms."""
    words.take("COLUMN")
    column = _dotted(words.name())
    return SyncIdentity(table, column) if words.take("SYNC", "IDENTITY") else None


# ---------------------------------------------------------------- indexes


def _create_index(words: Words) -> CreateIndex:
    if_not_exists = words.take("IF", "NOT", "EXISTS")
    name = words.part()
    words.expect("ON")
    words.take("TABLE")
    return CreateIndex(words.table(), name, _columns(words), if_not_exists)


def _drop_index(words: Words) -> DropIndex:
    if_exists = words.take("IF", "EXISTS")
    name = words.part()
    words.expect("ON")
    words.take("TABLE")
    return DropIndex(words.table(), name, if_exists)


def _columns(words: Words, *, may_lack_parentheses: bool = False) -> tuple[str, ...]:
    """Parse names between parentheses, which ZORDER BY may lack, and return each as SQL text."""
    has_parentheses = words.take("(") if may_lack_parentheses else True
    if not may_lack_parentheses:
        words.expect("(")
    columns = [_dotted(words.name())]
    while words.take(","):
        columns.append(_dotted(words.name()))
    if has_parentheses:
        words.expect(")")
    return tuple(columns)


def _dotted(parts: tuple[str, ...]) -> str:
    """Return the name of a column or of a field as SQL text, with backticks where they are needed."""
    return ".".join(part if part.isidentifier() else quoted(part) for part in parts)


_BEGINNINGS: tuple[tuple[tuple[str, ...], Callable[[Words], Utility | None]], ...] = (
    (("OPTIMIZE",), _optimize),
    (("VACUUM",), _vacuum),
    (("DESCRIBE", "HISTORY"), _history),
    (("DESC", "HISTORY"), _history),
    (("DESCRIBE", "DETAIL"), _detail),
    (("DESC", "DETAIL"), _detail),
    (("RESTORE",), _restore),
    (("CONVERT", "TO", "DELTA"), _convert),
    (("GENERATE",), _generate),
    (("REORG", "TABLE"), _reorg),
    (("FSCK", "REPAIR", "TABLE"), _fsck),
    (("CREATE",), _create),
    (("REPLACE",), _replace),
    (("ALTER", "TABLE"), _alter),
    (("DROP", "INDEX"), _drop_index),
)
