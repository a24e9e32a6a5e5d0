"""Which rows of one scan a plan wants, as WantedRows.java finds it without running the plan."""

from __future__ import annotations

import json
from dataclasses import dataclass

from delta_py.expressions import tree
from spark_plugin.pruning.predicate_json import conjunction_of, parse_predicate


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a plan wants of one of its scans. predicate: true for all rows that matter, None for any. exact: the plan is
    just these rows. none: the plan gives no rows at all."""

    predicate: tree.Expression | None
    exact: bool = False
    none: bool = False

    @classmethod
    def parse(cls, text: str) -> Wanted:
        """text: of WantedRows.java. A scan that is not there, or more than once, may be asked for any row."""
        answer = json.loads(text)
        if answer["found"] != 1:
            return cls(None, none=bool(answer["empty"]) and answer["found"] == 0)
        predicates = [parse_predicate(value) for value in answer["predicates"]]
        return cls(conjunction_of(predicates), exact=bool(answer["exact"]) and None not in predicates)

    def without(self, column: str) -> Wanted:
        """As far as it does not depend on a column, which the scan makes itself and no file's statistics speak of."""
        parts = () if self.predicate is None else tree.conjuncts(self.predicate)
        known = tuple(part for part in parts if all(path[0] != column for path in tree.columns_of(part)))
        return self if len(known) == len(parts) else Wanted(conjunction_of(known), none=self.none)
