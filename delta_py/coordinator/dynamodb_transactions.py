"""The transactions of a ledger in DynamoDB: begin, propose commits, hold reads, abort. The ledger commits them.

A proposal, and the reads of a transaction, may be larger than an item. They are written in parts first, and then as an item that
names the parts. Another process may end a transaction and delete its items at any time: a reader that does not get all parts
returns nothing, or raises.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from delta_py.coordinator.dynamodb_items import HASH, RANGE, DynamoDbItems, Item, Key, key_attributes
from delta_py.coordinator.dynamodb_keys import (
    ABORTED,
    COMMITTED,
    LEDGER,
    LONGEST_RANGE_BYTES,
    OPEN,
    cleanup_key,
    commit_values,
    now_ms,
    padded,
    ratified_of,
    transaction_key,
)
from delta_py.coordinator.ledger import (
    COMMITTED_RETENTION_MS,
    TOKEN_RETENTION_MS,
    OpenTransaction,
    ProposedCommit,
    ended_error,
    unavailable_error,
    version_taken_error,
)

_PART_BYTES = 300_000  # an item has at most 400 KB


class DynamoDbTransactions:
    """The methods of a Ledger (ledger.py) for transactions over tables: they do and raise what the methods of Ledger do.

    A transaction has one item of its own, whose attribute `state` is open, committed or aborted. Its moment is the number of the
    newest ratification when it began: it reads all tables as they were then. call: the unique text that a call writes into its
    items, to recognize them if the reply is lost.
    """

    def __init__(self, items: DynamoDbItems) -> None:
        self.items = items
        self.shown = items.shown

    def begin(self, seconds: float) -> OpenTransaction:
        """Begin a transaction that may last for this time, and delete the items of transactions whose time is over."""
        now = now_ms()
        # The keys begin with the times at which transactions end, and `~` comes after all characters in them.
        for item in self.items.query("open", between=("", f"{padded(now - 1)}~")):
            self._delete_overdue(item, now)
        identity, ends_ms = str(uuid.uuid4()), now + round(seconds * 1000)
        moment = int(self._read_ledger()["moment"])
        values = {"moment": moment, "state": OPEN, "ends_ms": ends_ms}
        cleanup_item = self.items.put_action(cleanup_key(ends_ms, identity), {"transaction": identity})
        for _ in self.items.tries():
            if self.items.write([self.items.put_action(transaction_key(identity), values), cleanup_item]):
                break
            if self.items.get(transaction_key(identity))[0] is not None:
                break  # an earlier attempt succeeded, but its reply was lost
        return OpenTransaction(identity=identity, moment=moment)

    def _delete_overdue(self, cleanup_item: Item, now: int) -> None:
        """Delete the remaining items of a transaction whose time is over. cleanup_item: the item that lists it for cleanup. now:
        ms since 1970. The record that a transaction was committed stays for COMMITTED_RETENTION_MS; the transaction is listed
        again for that time."""
        transaction = cleanup_item["transaction"]
        key = transaction_key(transaction)
        (item,) = self.items.get(key)
        if item is not None and item["state"] == COMMITTED and item["ends_ms"] >= now - COMMITTED_RETENTION_MS:
            later_key = cleanup_key(item["ends_ms"] + COMMITTED_RETENTION_MS, transaction)
            self.items.put_alone(key_attributes(later_key) | {"transaction": transaction})
        elif item is not None and not self.items.write([self.items.delete_action(key, {"state": item["state"]})]):
            return  # it has ended in the meantime: the next call deletes it
        self._drop_proposals(transaction)  # after the transaction, so that no transaction has only a part of its proposals
        self.items.delete_alone((cleanup_item[HASH], cleanup_item[RANGE]))  # last: if this call dies, the next one completes it

    def find(self, transaction: str) -> OpenTransaction:
        """An open transaction. Raises TransactionEndedError."""
        (item,) = self.items.get(transaction_key(transaction))
        open_item = require_open(transaction, item)
        return OpenTransaction(identity=transaction, moment=int(open_item["moment"]))

    def propose(self, transaction: str, proposed: ProposedCommit) -> None:
        """Add a staged commit to an open transaction. Raises VersionTakenError if it already has a commit of that version."""
        commit, described, call = proposed.commit, proposed.described, str(uuid.uuid4())
        key = (transaction_key(transaction)[0], f"proposal {commit.table} {padded(commit.version)}")
        self.items.check_length("place of a table", commit.table, LONGEST_RANGE_BYTES)
        parts = self._put_parts(transaction, call, described)
        values = commit_values(commit) | {"place": commit.table, "call": call, "parts": parts}
        if not self._add_item(transaction, key, values):  # the transaction has a commit of this version
            raise version_taken_error(commit.table, commit.version, commit.version)

    def _put_parts(self, transaction: str, call: str, data: bytes) -> int:
        """Write the data in parts, and return the number of parts. Readers find the parts through an item with the same `call`.
        Raises TransactionEndedError."""
        key = transaction_key(transaction)
        (transaction_item,) = self.items.get(key)
        transaction_item = require_open(transaction, transaction_item)
        expires = (transaction_item["ends_ms"] + TOKEN_RETENTION_MS) // 1000  # for parts written after the transaction's end
        pieces = [data[begin : begin + _PART_BYTES] for begin in range(0, len(data), _PART_BYTES)]
        for number, piece in enumerate(pieces):
            self.items.put_alone({HASH: key[0], RANGE: f"part {call} {padded(number)}", "bytes": piece, "expireTime": expires})
        return len(pieces)

    def _add_item(self, transaction: str, key: Key, values: Item) -> bool:
        """Add an item to an open transaction; returns False if another item has that key.

        An item with the same `call` is this one: the reply to an earlier try was lost.
        """
        for _ in self.items.tries():
            present_item, transaction_item = self.items.get(key, transaction_key(transaction))
            if present_item is not None and present_item["call"] == values["call"]:
                return True
            require_open(transaction, transaction_item)  # raises if the transaction has ended
            if present_item is not None:
                return False
            open_check = self.items.check_action(transaction_key(transaction), {"state": OPEN})
            if self.items.write([open_check, self.items.put_action(key, values)]):
                return True
        raise AssertionError("unreachable")

    def proposed(self, transaction: str, table: str | None = None) -> list[ProposedCommit]:
        """The commits of an open transaction, of one table or of all; empty if it has ended."""
        headers_and_data = self._read_if_open(transaction, lambda: self._query_proposals(transaction, table))
        return _as_proposed(headers_and_data)

    def hold_reads(self, transaction: str, table: str, reads: bytes) -> None:
        """Store reads of a table that belong to no commit of the transaction."""
        call = str(uuid.uuid4())
        parts = self._put_parts(transaction, call, reads)
        key = (transaction_key(transaction)[0], f"reads {call}")
        # The key has this call's unique text, so no other item has it, and the result is always True.
        self._add_item(transaction, key, {"place": table, "call": call, "parts": parts})

    def held_reads(self, transaction: str) -> dict[str, list[bytes]]:
        """The stored reads of an open transaction, by table; empty if it has ended."""
        reads_by_place: dict[str, list[bytes]] = {}
        hash_key = transaction_key(transaction)[0]
        for item, reads in self._read_if_open(transaction, lambda: list(self.items.query(hash_key, begins="reads "))):
            reads_by_place.setdefault(item["place"], []).append(reads)
        return reads_by_place

    def _read_if_open(self, transaction: str, find: Callable[[], list[Item]]) -> list[tuple[Item, bytes]]:
        """Items of an open transaction, each with the joined content of its parts; empty if the transaction has ended. find:
        reads the items. Raises CoordinatorUnavailableError if parts are missing although the transaction is open.
        """
        if self.state_of(transaction) != OPEN:
            return []
        headers = find()
        complete_items = self._read_parts(transaction, headers)
        # If the transaction has ended meanwhile, another process may have deleted some items and parts.
        if self.state_of(transaction) != OPEN:
            return []
        if len(complete_items) != len(headers):
            raise unavailable_error(
                self.shown, f"some of the stored commits or reads of the transaction {transaction} were deleted"
            )
        return complete_items

    def _read_parts(self, transaction: str, headers: list[Item]) -> list[tuple[Item, bytes]]:
        """The items whose parts all exist. After a transaction has ended, another process may have deleted some parts."""
        complete_items = []
        for item in headers:
            parts = list(self.items.query(transaction_key(transaction)[0], begins=f"part {item['call']} "))
            if len(parts) == item["parts"]:
                complete_items.append((item, b"".join(part["bytes"] for part in parts)))
        return complete_items

    def _query_proposals(self, transaction: str, table: str | None) -> list[Item]:
        """The items of proposals, without their parts, in the order of their keys. table: None for all tables. Another table's
        place may begin with this one and a blank, so places are compared too.
        """
        items = self.items.query(transaction_key(transaction)[0], begins="proposal " if table is None else f"proposal {table} ")
        return [item for item in items if table in (None, item["place"])]

    def state_of(self, transaction: str) -> str | None:
        """`open`, `committed` or `aborted`; None if the transaction is not known any more."""
        (item,) = self.items.get(transaction_key(transaction))
        return None if item is None else str(item["state"])

    def abort(self, transaction: str) -> list[ProposedCommit]:
        """End a transaction, and return the commits that it had proposed; empty if it had ended before."""
        call = str(uuid.uuid4())
        for _ in self.items.tries():
            (item,) = self.items.get(transaction_key(transaction))
            if item is not None and item.get("call") == call:
                break  # an earlier attempt succeeded, but its reply was lost
            if item is None or item["state"] != OPEN:
                return []
            changes = {"state": ABORTED, "call": call}
            if self.items.write([self.items.update_action(transaction_key(transaction), changes, {"state": OPEN})]):
                break
        proposals = self._read_parts(transaction, self._query_proposals(transaction, None))
        with self.items.clean_up():
            self._drop_proposals(transaction)
        return _as_proposed(proposals)

    def _drop_proposals(self, transaction: str) -> None:
        """Delete the proposals and reads of a transaction, and then their parts."""
        for begins in ("proposal ", "reads ", "part "):
            self.items.remove(self.items.query(transaction_key(transaction)[0], begins=begins))

    def _read_ledger(self) -> Item:
        """Read the ledger's own item. Raises CoordinatorUnavailableError if it was deleted."""
        return self._require_ledger(self.items.get(LEDGER)[0])

    def _require_ledger(self, ledger: Item | None) -> Item:
        """The ledger's own item, as it was read. Raises CoordinatorUnavailableError if it is None: the item was deleted."""
        if ledger is None:
            raise unavailable_error(self.shown, "the item that says which ledger it is was deleted")
        return ledger


def _as_proposed(items: list[tuple[Item, bytes]]) -> list[ProposedCommit]:
    """The proposals, sorted by table and version. items: each with its description, which is in other items."""
    proposals = [ProposedCommit(ratified_of(item["place"], item), described) for item, described in items]
    return sorted(proposals, key=lambda proposal: (proposal.commit.table, proposal.commit.version))


def require_open(transaction: str, item: Item | None) -> Item:
    """The item of a transaction, if the transaction is open. item: as it was read; None if it does not exist. Raises
    TransactionEndedError if the transaction has ended, or its time is over."""
    if item is None or item["state"] != OPEN or item["ends_ms"] < now_ms():
        raise ended_error(transaction, item["state"] if item is not None and item["state"] != OPEN else None)
    return item
