"""CHECK constraints of an existing table: ADD CONSTRAINT checks every row first, DROP CONSTRAINT none.

    add_constraint(store, "positive", "amount > 0")
    drop_constraint(store, "positive", if_exists=True)

A constraint is a table property, `delta.constraints.<name>`. It is added only if it holds for all rows. Rows that other writers
add in the meantime are a conflict, and writers that started before it fail on the changed metadata.
Protocol: CHECK Constraints; Change Metadata.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from delta_py.commit.transaction import Transaction
from delta_py.definition.protocols import features_in_use, with_features
from delta_py.errors import DeltaError, InvalidOptionError, InvariantViolationError
from delta_py.expressions.parse import parse_expression
from delta_py.expressions.resolve import resolve
from delta_py.parquet.scan_all_rows import map_file_groups
from delta_py.protocol.features import Properties
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.row_rules.hidden_rule_columns import rule_column
from delta_py.row_rules.row_constraints import CHECK_PREFIX, Clock, RowCheck, RowRule
from delta_py.scan.planning import ScanOptions
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import BOOLEAN, StructType

# The name of delta-spark's own check of the lengths of CHAR and VARCHAR.
_RESERVED = "__CHAR_VARCHAR_STRING_LENGTH_CHECK__"


@dataclass(frozen=True, slots=True)
class CheckedVersion:
    """The result of a check that another process (such as a Spark job) made: how many rows of a version violate the new
    constraint."""

    version: int
    broken_rows: int


def add_constraint(
    store: ObjectStore, name: str, sql: str, *, checked: CheckedVersion | None = None, time_zone: str = "UTC"
) -> int:
    """Add a CHECK constraint; returns the version. checked: the result of a check of all rows; None to check them here,
    in threads.

    Raises InvalidOptionError: DELTA_CONSTRAINT_ALREADY_EXISTS, DELTA_INVALID_CONSTRAINT_NAME, DELTA_NON_BOOLEAN_CHECK_CONSTRAINT
    and DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT for SQL that is not a condition, or that no writer here could enforce;
    InvariantViolationError (DELTA_NEW_CHECK_CONSTRAINT_VIOLATION) with the number of rows that violate it;
    ConcurrentAppendException when rows were added since the check.
    """
    snapshot = Snapshot.load(store, version=None if checked is None else checked.version)
    rule = RowRule("check", name, sql)
    transaction = Transaction(snapshot)
    check_new_constraint(snapshot.config, rule, time_zone)
    if checked is None:
        broken_rows = _count_broken_rows(transaction, snapshot.config, rule, time_zone)
    else:
        transaction.read_rows()  # another process has read them, so rows that were added since then are a conflict
        broken_rows = checked.broken_rows
    _refuse_broken_rows(snapshot, rule, broken_rows)
    return _commit(snapshot, transaction, _properties_with_rules(snapshot, [rule]), "ADD CONSTRAINT", {"name": name, "expr": sql})


def add_constraints(store: ObjectStore, constraints: Mapping[str, str], *, time_zone: str = "UTC") -> int:
    """Add CHECK constraints, SQL by name, in one commit, or in none if there are none; returns the version. Raises as
    add_constraint; InvalidOptionError (DELTA_CONSTRAINT_ALREADY_EXISTS) also for two names that differ only in case."""
    if len(constraints) == 1:  # then the history has the SQL itself, without the parentheses that several conditions need
        return add_constraint(store, *next(iter(constraints.items())), time_zone=time_zone)
    snapshot = Snapshot.load(store)
    if not constraints:
        return snapshot.version
    rules = [RowRule("check", name, sql) for name, sql in constraints.items()]
    transaction = Transaction(snapshot)
    # Each rule is checked against the table with the rules before it, so that two equal names are an error.
    for number, rule in enumerate(rules):
        metadata = replace(snapshot.metadata, configuration=_properties_with_rules(snapshot, rules[:number]))
        check_new_constraint(TableConfig(snapshot.protocol, metadata), rule, time_zone)
    for rule in rules:
        _refuse_broken_rows(snapshot, rule, _count_broken_rows(transaction, snapshot.config, rule, time_zone))
    parameters = {"name": ", ".join(constraints), "expr": " AND ".join(f"({rule.sql})" for rule in rules)}
    return _commit(snapshot, transaction, _properties_with_rules(snapshot, rules), "ADD CONSTRAINT", parameters)


def _properties_with_rules(snapshot: Snapshot, rules: Sequence[RowRule]) -> dict[str, str]:
    """The table's properties with new constraints."""
    return {**snapshot.metadata.configuration, **{CHECK_PREFIX + rule.name.lower(): rule.sql for rule in rules}}


def _refuse_broken_rows(snapshot: Snapshot, rule: RowRule, broken_rows: int) -> None:
    """Raises InvariantViolationError if there are rows that violate the rule. broken_rows: their number."""
    if broken_rows:
        raise InvariantViolationError(
            f"{broken_rows} rows of the table at {snapshot.table_root} violate the new CHECK constraint {rule.name} "
            f"({rule.sql}): it is not true of them. Nothing was changed. Correct these rows first.",
            error_class="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
            sql_state="23512",
            constraint=rule.name,
            expression=rule.sql,
            row_count=broken_rows,
        )


def drop_constraint(store: ObjectStore, name: str, *, if_exists: bool = False) -> int:
    """Drop a CHECK constraint; returns the version. if_exists: a missing constraint is no error.

    Raises InvalidOptionError (DELTA_CONSTRAINT_DOES_NOT_EXIST).
    """
    snapshot = Snapshot.load(store)
    constraint = _find_constraint(snapshot.config, name)
    if constraint is None and not if_exists:
        raise InvalidOptionError(
            f"The table at {store.root} has no CHECK constraint {name}. Nothing was changed. Its constraints are: "
            f"{', '.join(constraint_names(snapshot.config)) or 'none'}.",
            error_class="DELTA_CONSTRAINT_DOES_NOT_EXIST",
            sql_state="42704",
            constraint=name,
        )
    if constraint is None:
        return snapshot.version
    key, sql = constraint
    properties = {
        name_of_property: value for name_of_property, value in snapshot.metadata.configuration.items() if name_of_property != key
    }
    parameters = {"name": name, "expr": sql, "existed": "true"}
    return _commit(snapshot, Transaction(snapshot), properties, "DROP CONSTRAINT", parameters)


def constraint_names(config: TableConfig) -> list[str]:
    """The names of the table's CHECK constraints, sorted."""
    return sorted(key[len(CHECK_PREFIX) :] for key in config.metadata.configuration if key.lower().startswith(CHECK_PREFIX))


def _find_constraint(config: TableConfig, name: str) -> tuple[str, str] | None:
    """The property's name and the SQL of a constraint; None if the table has none of that name, in any case of letters."""
    property_name = (CHECK_PREFIX + name).lower()
    return next(((key, value) for key, value in config.metadata.configuration.items() if key.lower() == property_name), None)


def check_new_constraint(config: TableConfig, rule: RowRule, time_zone: str) -> None:
    """Check a new CHECK constraint, without reading rows. Raises InvalidOptionError, as add_constraint, for a name that exists or
    is reserved, and for SQL that is no condition.

    A condition that this library cannot evaluate is accepted if it may be boolean and a Spark session may evaluate it.
    """
    existing_constraint = _find_constraint(config, rule.name)
    if existing_constraint is not None:
        raise InvalidOptionError(
            f"The table has a constraint {rule.name} already: {existing_constraint[1]}. Nothing was changed. Drop it first, or "
            "choose another name.",
            error_class="DELTA_CONSTRAINT_ALREADY_EXISTS",
            sql_state="42710",
            constraint=rule.name,
        )
    if rule.name == _RESERVED or not rule.name:
        raise InvalidOptionError(
            f"{rule.name!r} cannot be the name of a constraint. Nothing was changed. Choose another.",
            error_class="DELTA_INVALID_CONSTRAINT_NAME",
            sql_state="42939",
            constraint=rule.name,
        )
    try:
        RowCheck(rule, config.schema, Clock(0, time_zone))
        return  # this library can evaluate it
    except DeltaError as error:
        # The cause says what is wrong with the SQL; the error around it speaks of writing rows.
        cause = error.__cause__ if isinstance(error.__cause__, DeltaError) else error
    try:
        if _is_condition(rule, config.schema, time_zone):
            rule_column(rule, config.schema, config.partition_columns)
            return  # Spark can evaluate it when a session saves rows
    except DeltaError as error:
        raise _no_condition_error(rule, cause, "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT") from error
    raise _no_condition_error(rule, cause, "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT")


def _is_condition(rule: RowRule, schema: StructType, time_zone: str) -> bool:
    """Whether the rule may be boolean. True for SQL that cannot be parsed here: Spark may be able to parse it."""
    try:
        parsed = parse_expression(rule.sql, schema, session_timezone=time_zone)
        return resolve(parsed, schema, time_zone).data_type == BOOLEAN
    except DeltaError:
        return True


def _no_condition_error(rule: RowRule, cause: DeltaError, condition: str) -> InvalidOptionError:
    """The error for SQL that cannot be a constraint. cause: the error of the attempt to evaluate it. condition: the error
    class."""
    return InvalidOptionError(
        f"{rule.sql} cannot be the CHECK constraint {rule.name}: {cause.message} Nothing was changed. A constraint is a "
        "condition on the columns of one row.",
        error_class=condition,
        sql_state="42621",
        constraint=rule.name,
        expression=rule.sql,
    )


def _count_broken_rows(transaction: Transaction, config: TableConfig, rule: RowRule, time_zone: str) -> int:
    """How many rows of the version violate the rule. Reads only the columns that the rule names; memory holds one batch per
    thread.
    """
    try:
        column_names = {path[0] for path in RowCheck(rule, config.schema, Clock(0, time_zone)).columns}
    except DeltaError as error:
        raise InvalidOptionError(
            f"The rows cannot be checked for the CHECK constraint {rule.name} ({rule.sql}) without Spark: {error.message} "
            "Nothing was changed. Add it in a Spark session.",
            error_class="DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT",
            sql_state="42621",
            constraint=rule.name,
            expression=rule.sql,
        ) from error
    # For a rule without columns, some column is read to know the number of rows.
    columns = StructType(tuple(f for f in config.schema.fields if f.name in column_names) or config.schema.fields[:1])
    check = RowCheck(rule, columns, Clock(time.time_ns() // 1000, time_zone))
    scan = transaction.scan(None, columns.names, ScanOptions(timezone=time_zone))
    return sum(map_file_groups(scan, lambda batches: sum(map(check.count_violations, batches))))


def _commit(
    snapshot: Snapshot, transaction: Transaction, properties: Mapping[str, str], operation: str, parameters: Mapping[str, str]
) -> int:
    """Commit new properties, and the features that they need; returns the version. properties: all properties of the table.
    operation, parameters: for the history."""
    metadata = replace(snapshot.metadata, configuration=dict(properties))
    protocol = with_features(snapshot.protocol, features_in_use(snapshot.schema, Properties(properties)))
    TableConfig(protocol, metadata).require(Operation.WRITE)
    transaction.set_metadata(metadata)
    if protocol != snapshot.protocol:
        transaction.set_protocol(protocol)
    return transaction.commit(operation, parameters)
