"""Splits DELETE, UPDATE and MERGE INTO into clauses, for clients that have no parser: each clause is the text as it was written.

    parse_change("DELETE FROM t AS x WHERE x.id = 3")          # DeleteRows(TableName(("t",)), "x", "x.id = 3")

Conditions, values and sources are not parsed here. They are passed on as text, with constants in place of parameters, to the code
that parses them. This module only finds where they begin and end: outside of parentheses, brackets and CASE ... END.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from spark_plugin.sql.syntax import TableName, Words

Assignments: TypeAlias = "tuple[tuple[tuple[str, ...], str], ...]"
"""Pairs: the parts of a column's name, and the text of its new value."""


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """A DELETE. where: the text of its condition; None to delete all rows."""

    table: TableName
    alias: str | None
    where: str | None


@dataclass(frozen=True, slots=True)
class UpdateRows:
    """An UPDATE. where: the text of its condition; None to update all rows."""

    table: TableName
    alias: str | None
    assignments: Assignments
    where: str | None


@dataclass(frozen=True, slots=True)
class WhenClause:
    """A WHEN clause of a MERGE. condition: the text after AND; None without AND. assignments: None for DELETE, UPDATE SET * and
    INSERT *."""

    kind: Literal["matched", "not matched", "not matched by source"]
    action: Literal["update", "delete", "insert"]
    condition: str | None
    assignments: Assignments | None


@dataclass(frozen=True, slots=True)
class MergeRows:
    """A MERGE. source: text that can stand after FROM. condition: the text after ON. evolves: whether the statement
    contains WITH SCHEMA EVOLUTION."""

    table: TableName
    alias: str | None
    source: str
    condition: str
    clauses: tuple[WhenClause, ...]
    evolves: bool


Change: TypeAlias = DeleteRows | UpdateRows | MergeRows


def parse_change(text: str, args: Any = None) -> Change | None:
    """Split a statement into its clauses. Returns None for another statement. args: as in Statement; the texts of the clauses
    have constants in place of parameters.

    Raises SyntaxFault for a text that begins like one of these statements but does not continue like it.
    """
    return change_of(Words(text, args, binds=True))


def change_of(words: Words) -> Change | None:
    """Do the same as parse_change for the remaining words."""
    if words.take("DELETE", "FROM"):
        parse = _delete
    elif words.take("UPDATE"):
        parse = _update
    elif words.take("MERGE"):
        parse = _merge
    else:
        return None
    change: Change = parse(words)
    words.end()
    return change


# Each function parses the words after the beginning of its statement.


def _delete(words: Words) -> Change:
    table = TableName(words.name())
    alias = _alias(words, "WHERE")
    return DeleteRows(table, alias, words.text_until() if words.take("WHERE") else None)


def _update(words: Words) -> Change:
    table = TableName(words.name())
    alias = _alias(words, "SET")
    words.expect("SET")
    assignments = _assignments(words, ("WHERE",))
    return UpdateRows(table, alias, assignments, words.text_until() if words.take("WHERE") else None)


def _alias(words: Words, *words_after_table: str) -> str | None:
    """Parse the table's alias, with or without AS. words_after_table: words that follow the table if it has no alias."""
    if words.take("AS"):
        return words.part()
    return None if words.is_over() or any(words.at(word) for word in words_after_table) else words.part()


def _assignments(words: Words, *stops: tuple[str, ...]) -> Assignments:
    """Parse the list of SET. stops: the words that may follow the list, as in Words.text_until."""
    assignments = []
    while True:
        name = words.name()
        if not words.take("="):
            words.expect("==")
        assignments.append((name, words.text_until((",",), *stops)))
        if not words.take(","):
            return tuple(assignments)


# ---------------------------------------------------------------- MERGE

_WHEN = (("WHEN", "MATCHED"), ("WHEN", "NOT", "MATCHED"))  # how a clause begins; a WHEN alone may belong to a CASE


def _merge(words: Words) -> Change:
    evolves = words.take("WITH", "SCHEMA", "EVOLUTION")
    words.expect("INTO")
    table = TableName(words.name())
    alias = _alias(words, "USING")
    words.expect("USING")
    source = words.text_until(("ON",))
    words.expect("ON")
    condition = words.text_until(*_WHEN)
    clauses = []
    while words.take("WHEN"):
        clauses.append(_when(words))
    return MergeRows(table, alias, source, condition, tuple(clauses), evolves)


def _when(words: Words) -> WhenClause:
    """Parse a WHEN clause, after the word WHEN."""
    is_not_matched = words.take("NOT")
    words.expect("MATCHED")
    is_by_source = is_not_matched and words.take("BY", "SOURCE")
    is_insert = is_not_matched and not is_by_source
    if is_insert:
        words.take("BY", "TARGET")
    condition = words.text_until(("THEN",)) if words.take("AND") else None
    words.expect("THEN")
    if is_insert:
        return WhenClause("not matched", "insert", condition, _insert_values(words))
    kind: Literal["matched", "not matched by source"] = "not matched by source" if is_by_source else "matched"
    if words.take("DELETE"):
        return WhenClause(kind, "delete", condition, None)
    words.expect("UPDATE", "SET")
    return WhenClause(kind, "update", condition, None if words.take("*") else _assignments(words, *_WHEN))


def _insert_values(words: Words) -> Assignments | None:
    """Parse INSERT (...) VALUES (...); None for INSERT *."""
    words.expect("INSERT")
    if words.take("*"):
        return None
    words.expect("(")
    names = [words.name()]
    while words.take(","):
        names.append(words.name())
    words.expect(")", "VALUES", "(")
    values = [words.text_until((",",))]
    while words.take(","):
        values.append(words.text_until((",",)))
    if len(names) != len(values):
        words.fault(f"{len(names)} columns and {len(values)} values")
    words.expect(")")
    return tuple(zip(names, values, strict=True))
