"""START TRANSACTION, COMMIT, ROLLBACK: the session's statements between them, on several tables, are one transaction.

    START TRANSACTION
    UPDATE shop.accounts SET balance = balance - 10 WHERE id = 1
    INSERT INTO shop.entries VALUES (1, -10)
    COMMIT                                  -- table, version; or ROLLBACK

The ledger of the session's commit coordinator has the transaction, and a setting of the session has its identity. Every read and
write of the session then gets the identity as an option: statements, DataFrames, and DeltaTable. Spark's own parser knows none of
these statements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from delta_py import transactions
from delta_py.coordinator.ledger import CoordinatorUnavailableError
from delta_py.errors import UnsupportedOperationError
from spark_plugin.cached_tables import refresh_all_cached
from spark_plugin.options.catalog_session_settings import TRANSACTION
from spark_plugin.options.settings import conf
from spark_plugin.sql.results import nothing
from spark_plugin.sql.syntax import SyntaxFault, Words
from spark_plugin.sql_router import Statement, second_word
from spark_plugin.transactions import coordinator_of, plain_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


T = TypeVar("T")


def run_transaction(spark: SparkSession, statement: Statement) -> DataFrame | None:
    """Run START TRANSACTION, BEGIN TRANSACTION, COMMIT or ROLLBACK. Raises SqlSyntaxError, UnsupportedOperationError if no
    transaction is open, or one is already open, and the errors of DeltaTransaction. Returns None, and does nothing, for a script,
    which also begins with BEGIN; the rest of it is not read."""
    begins = statement.word in ("START", "BEGIN")
    if begins and second_word(statement.text) != "TRANSACTION":
        return None
    try:
        words = Words(statement.text, statement.args)
        if begins:
            words.expect(statement.word, "TRANSACTION")
            _parse_isolation(words)
            words.end()
            return _begin(spark)
        commits = words.take("COMMIT")
        if not commits:
            words.expect("ROLLBACK")
        if not words.take("TRANSACTION"):
            words.take("WORK")
        words.end()
    except SyntaxFault as fault:
        raise fault.raised() from fault
    return _commit(spark) if commits else _roll_back(spark)


def _parse_isolation(words: Words) -> None:
    """Parse ISOLATION LEVEL, if it is next. Raises UnsupportedOperationError for SERIALIZABLE. Only SNAPSHOT is possible: rows
    that SELECT has read cause no conflicts with other writers."""
    if words.take("ISOLATION"):
        words.expect("LEVEL")
        if words.take("SERIALIZABLE"):
            raise UnsupportedOperationError(
                "Transactions of SQL have the isolation SNAPSHOT: what SELECT reads in them is not held against others. Nothing "
                "was begun. Leave ISOLATION LEVEL out, or use DeltaTransaction(spark), whose read() is."
            )
        words.expect("SNAPSHOT")


def _begin(spark: SparkSession) -> DataFrame:
    """Begin a transaction. Returns one row with its identity."""
    identity = conf(spark, TRANSACTION)
    if identity is not None:
        raise UnsupportedOperationError(
            f"The session is in the transaction {identity} already. Nothing was begun. COMMIT or ROLLBACK it first, or begin "
            "another one in a session of its own (spark.newSession()).",
            transaction=identity,
        )
    # DeltaTransaction is a context manager. Here the statements that follow are its block, and COMMIT or ROLLBACK ends it.
    transaction = _transaction(spark).__enter__()
    spark.conf.set(TRANSACTION, transaction.identity)
    return spark.createDataFrame([(transaction.identity,)], "transaction string")


def _commit(spark: SparkSession) -> DataFrame:
    """Commit the transaction of the session. Returns the new version of each table."""
    versions = _end_transaction(spark, "commit", lambda transaction: transaction.commit())
    return spark.createDataFrame(sorted(versions.items()), "table string, version bigint")


def _roll_back(spark: SparkSession) -> DataFrame:
    _end_transaction(spark, "roll back", lambda transaction: transaction.abort())
    return nothing(spark)


def _end_transaction(spark: SparkSession, verb: str, end: Callable[[transactions.DeltaTransaction], T]) -> T:
    """End the transaction of the session, even if COMMIT or ROLLBACK failed. verb: for messages. end: commits or aborts the
    transaction, and returns the result. If the ledger gave no answer, the session stays in the transaction, so that the statement
    can be repeated."""
    identity = conf(spark, TRANSACTION)
    if identity is None:
        raise UnsupportedOperationError(
            f"There is no transaction to {verb}: the session is in none. Begin one with START TRANSACTION."
        )
    try:
        result = end(_transaction(spark).resume(identity))
    except CoordinatorUnavailableError:
        raise
    except BaseException:
        _leave_transaction(spark)
        raise
    _leave_transaction(spark)
    return result


def _leave_transaction(spark: SparkSession) -> None:
    """Remove the transaction from the session. Rows of tables that Spark has cached are refreshed: they are the rows that the
    transaction saw."""
    spark.conf.unset(TRANSACTION)
    refresh_all_cached(spark)


def _transaction(spark: SparkSession) -> transactions.DeltaTransaction:
    """Return a transaction that has not begun, with the session's coordinator."""
    options = partial(plain_options, spark)
    return transactions.DeltaTransaction(coordinator_of(spark), isolation="snapshot", storage_options=options)
