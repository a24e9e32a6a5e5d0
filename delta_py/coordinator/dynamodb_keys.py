"""Keys and values of the items that a ledger has in a DynamoDB table.

The DynamoDB table must exist, with the keys `tablePath` (hash) and `fileName` (range), both text. These are the keys that
delta-spark's S3DynamoDBLogStore uses. An item's hash key says what it is:

    ledger                  one item: the ledger's identity, the newest moment and its time, the number of tables, and which call
                            last changed the set of tables
    tables, ids             one item for each table, by place, and by its id
    commits <epoch>         one item for each ratified commit, by version. epoch: of the table since it was registered
    moments                 one item for each moment, by time
    open, transaction <id>  transactions, by the time of their cleanup; each with its proposals, the reads that it holds,
                            and the parts of both
    token <token>           one item for each token of a call that may be repeated

Items with `expireTime` (seconds since 1970) are not needed after that time: DynamoDB deletes them if that attribute is the
table's time to live.
"""

from __future__ import annotations

import time

from delta_py.coordinator.dynamodb_items import Item, Key
from delta_py.coordinator.ledger import Ratified

LONGEST_HASH_BYTES, LONGEST_RANGE_BYTES = 2000, 900  # for the caller's texts in keys; DynamoDB allows 2048 and 1024 bytes
LEDGER: Key = ("ledger", "ledger")
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


def transaction_key(transaction: str) -> Key:
    """The key of a transaction's own item. Its proposals, reads and parts have the same hash key."""
    return f"transaction {transaction}", "transaction"


def cleanup_key(ends_ms: int, transaction: str) -> Key:
    """The key of the item that lists a transaction for cleanup, in the order of the times at which transactions end."""
    return "open", f"{padded(ends_ms)} {transaction}"


def token_key(token: str) -> Key:
    """The key of the item that says at which moment a call with this token was carried out."""
    return f"token {token}", "token"


def padded(number: int) -> str:
    """A number as a text of a fixed length, so that keys sort as their numbers."""
    return f"{number:020}"


def commit_values(commit: Ratified) -> Item:
    """The attributes that the item of a ratified or proposed commit has."""
    return {"version": commit.version, "name": commit.name, "size_bytes": commit.size_bytes, "commit_ms": commit.time_ms}


def ratified_of(table: str, item: Item) -> Ratified:
    """The commit in an item that has commit_values. table: its place."""
    return Ratified(table, item["version"], item["name"], item["size_bytes"], item["commit_ms"])


def now_ms() -> int:
    return time.time_ns() // 1_000_000
