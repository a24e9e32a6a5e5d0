"""The rows of one scan that a plan needs, as WantedRows.java finds them without running the plan."""

from __future__ import annotations

import json
from dataclasses import dataclass

from delta_py.expressions import tree
from spark_plugin.pruning.predicate_json import conjunction_of, parse_predicate


@dataclass(frozen=True, slots=True)
class NeededRows:
    """The rows of one scan that can influence the result of the Spark plan which contains this scan.

    predicate: true for every needed row; None if any row may be needed. exact: the plan needs exactly the rows for which the
    predicate is true; otherwise it may need fewer of them. none: the plan returns no rows at all."""

    predicate: tree.Expression | None
    exact: bool = False
    none: bool = False

    @classmethod
    def parse(cls, text: str) -> NeededRows:
        """Parse the answer of WantedRows.java, JSON with `found`, how often the scan occurs in the plan; `predicates` and `exact`
        about its rows; and `empty`, whether the plan returns no rows. If the scan occurs more than once, or not at all in a plan
        with rows, the plan may need any row of it."""
        answer = json.loads(text)
        if answer["found"] != 1:
            return cls(None, none=bool(answer["empty"]) and answer["found"] == 0)
        predicates = [parse_predicate(value) for value in answer["predicates"]]
        return cls(conjunction_of(predicates), exact=bool(answer["exact"]) and None not in predicates)

    def without(self, column: str) -> NeededRows:
        """Return the needed rows without the conditions about a column that the scan itself makes, such as `_metadata`: no file's
        statistics describe it. The result is then no longer exact."""
        parts = () if self.predicate is None else tree.conjuncts(self.predicate)
        other_parts = tuple(part for part in parts if all(path[0] != column for path in tree.columns_of(part)))
        return self if len(other_parts) == len(parts) else NeededRows(conjunction_of(other_parts), none=self.none)
