"""A ledger in a DynamoDB table: for many processes on many machines, without a server to operate.

    dynamodb://TABLE?region=eu-west-1&endpoint=http://localhost:8000

The DynamoDB table must exist; dynamodb_keys.py says which keys it has, and which items.

A change of several items is one TransactWriteItems, on the condition that the ledger's item is unchanged since it was read. Each
call writes a unique text into its items. If the reply is lost, the call finds this text and knows that it succeeded. Cleanup
follows afterwards. If the cleanup fails, the call has still succeeded: the remaining items are deleted later, or are never read.
"""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from delta_py.coordinator import dynamodb_items
from delta_py.coordinator.dynamodb_items import RANGE, READ_ONLY_ATTEMPT, DynamoDbItems, Item
from delta_py.coordinator.dynamodb_keys import (
    COMMITTED,
    LEDGER,
    LONGEST_HASH_BYTES,
    LONGEST_RANGE_BYTES,
    OPEN,
    commit_values,
    now_ms,
    padded,
    ratified_of,
    token_key,
    transaction_key,
)
from delta_py.coordinator.dynamodb_transactions import DynamoDbTransactions, require_open
from delta_py.coordinator.ledger import (
    RETAINED_MOMENTS,
    RETAINED_VERSIONS,
    TOKEN_RETENTION_MS,
    Inventory,
    Ratified,
    Restored,
    Tail,
    TokenUsedError,
    another_ledger_error,
    contended_error,
    known_at_other_place_error,
    not_remembered_error,
    version_taken_error,
)

_MOST_DELETED = 100  # how many old items one call deletes, so that no call takes long
_FIRST_QUERY_COMMITS = 16  # number of newest commits that are read first to find the version at a moment
_UNIQUE_ATTRIBUTES = ("identity", "moment", "changed")  # attributes of the ledger's item that never return to an earlier value


class DynamoDbLedger(DynamoDbTransactions):
    """A Ledger (ledger.py): its methods do and raise what the methods of Ledger do. Raises InvalidOptionError for an invalid URL.

    table: the place of a table. moment: the number of a ratification, which grows. epoch: a text for one registration of a table;
    a table that is registered again gets another one. call: the unique text that a call writes into its items.
    """

    identity: str

    def __init__(self, url: str) -> None:
        super().__init__(DynamoDbItems(url))
        self.identity = self._prepare()

    def _prepare(self) -> str:
        """Create the ledger's item if it is missing. Returns the ledger's identity."""
        new = {"identity": str(uuid.uuid4()), "moment": 0, "time_ms": 0, "tables": 0, "changed": ""}
        if self.items.get(LEDGER)[0] is None:
            self.items.write([self.items.put_action(LEDGER, new)])  # if this returns False, another process was faster
        return str(self._read_ledger()["identity"])

    # ------------------------------------------------------------ tables

    def register(self, table: str, version: int, table_id: str) -> None:
        """Begin to coordinate a table whose versions up to this one are published."""
        self.items.check_length("place of a table", table, LONGEST_RANGE_BYTES)
        self.items.check_length("id of a table", table_id, LONGEST_RANGE_BYTES)
        for _ in self.items.tries():
            ledger, table_item, id_item = self.items.get(LEDGER, ("tables", table), ("ids", table_id))
            ledger = self._require_ledger(ledger)
            if ledger["identity"] != self.identity:  # the database was created again since it was opened
                raise another_ledger_error(self.shown, ledger["identity"], self.identity)
            if self._is_registered(table, table_id, table_item, id_item):
                return
            actions = self._add_table_actions(table, version, version, table_id, ledger["moment"], str(uuid.uuid4()))
            if self.items.write([self._ledger_action(ledger, _table_set_changes(ledger["tables"] + 1)), *actions]):
                return

    def _is_registered(self, table: str, table_id: str, table_item: Item | None, id_item: Item | None) -> bool:
        """Whether the table is registered with this id. Raises UnsupportedOperationError if its place or its id is registered
        otherwise.
        """
        if table_item is not None and table_item["table_id"] != table_id:
            raise known_at_other_place_error(self.shown, table, table)
        if id_item is not None and id_item["place"] != table:
            raise known_at_other_place_error(self.shown, table, id_item["place"])
        return table_item is not None

    def _add_table_actions(self, table: str, published: int, version: int, table_id: str, moment: int, epoch: str) -> list[Item]:
        """The actions that register a table. published, version: its newest published and its newest ratified version. moment:
        the ledger's newest before that. epoch: a text that no other registration has; it is part of the keys of the table's
        commits.
        """
        values = {"table_id": table_id, "version": version, "published": published, "epoch": epoch}
        # The oldest state of the table that the ledger knows, for version_at.
        first_state = {"first_version": published, "first_moment": moment}
        return [
            self.items.put_action(("tables", table), values | first_state),
            self.items.put_action(("ids", table_id), {"place": table}),
        ]

    def inventory(self) -> Inventory:
        """The ledger's identity, and the places of all tables."""
        for _ in self.items.tries():
            ledger = self._read_ledger()
            places = tuple(sorted(item[RANGE] for item in self.items.query("tables")))
            ledger_after = self._read_ledger()  # a query is not one consistent state: the set of tables may change while it runs
            if (ledger_after["identity"], ledger_after["changed"]) == (ledger["identity"], ledger["changed"]):
                self.identity = ledger["identity"]
                return Inventory(self.identity, places)
        raise AssertionError("unreachable")

    def restore(self, identity: str, tables: Sequence[Restored]) -> None:
        """Become the ledger of that identity, which was lost, and register these tables."""
        call = str(uuid.uuid4())
        epochs = [f"{call} {number}" for number in range(len(tables))]
        for table in tables:
            self.items.check_length("place of a table", table.table, LONGEST_RANGE_BYTES)
            if [commit.version for commit in table.commits] != list(
                range(table.published + 1, table.published + 1 + len(table.commits))
            ):
                raise version_taken_error(table.table, table.commits[0].version, table.published)
        _check_no_duplicates(self.shown, tables)
        commits = [commit for table in tables for commit in table.commits]
        for _ in self.items.tries():
            keys = [key for table in tables for key in (("tables", table.table), ("ids", table.table_id))]
            ledger_item, *present_items = self.items.get(LEDGER, *keys)
            ledger = self._require_ledger(ledger_item)
            # present_items: for each table, the item by its place and the item by its id.
            if present_items and present_items[0] is not None and present_items[0]["epoch"] == epochs[0]:
                break  # an earlier attempt succeeded, but its reply was lost
            if ledger["identity"] != identity and ledger["tables"]:
                raise another_ledger_error(self.shown, ledger["identity"], identity)
            for table, table_item, id_item in zip(tables, present_items[::2], present_items[1::2], strict=True):
                if self._is_registered(table.table, table.table_id, table_item, id_item):
                    assert table_item is not None
                    raise version_taken_error(table.table, table.published, table_item["version"])
            # The restored commits share one new moment. Without commits, the ledger needs no new moment.
            moment = ledger["moment"] + 1 if commits else ledger["moment"]
            now = max(now_ms(), ledger["time_ms"])  # the times of moments never decrease
            changes = _table_set_changes(ledger["tables"] + len(tables)) | {"identity": identity}
            if commits:
                changes |= {"moment": moment, "time_ms": now}
            actions = [self._ledger_action(ledger, changes), *([self._add_moment_action(moment, now)] if commits else [])]
            for table, epoch in zip(tables, epochs, strict=True):
                newest = table.published + len(table.commits)
                actions += self._add_table_actions(table.table, table.published, newest, table.table_id, ledger["moment"], epoch)
                actions += [self._add_commit_action(epoch, commit, moment, call) for commit in table.commits]
            if self.items.write(actions):
                break
        self.identity = identity

    def forget(self, table: str, version: int | None = None) -> bool:
        """Stop coordinating a table. version: only if this is its newest version, and all commits are published."""
        if _is_too_long(table):
            return True
        epochs = set[str]()  # the registrations that an attempt has tried to delete
        for _ in self.items.tries():
            ledger, table_item = self.items.get(LEDGER, ("tables", table))
            ledger = self._require_ledger(ledger)
            if table_item is None or (epochs and table_item["epoch"] not in epochs):
                break  # other epoch: an earlier attempt succeeded, its reply was lost, and the table is registered again
            if version is not None and (table_item["version"], table_item["published"]) != (version, version):
                return False
            epochs.add(table_item["epoch"])
            required = {name: table_item[name] for name in ("epoch", "version", "published")}
            actions = [
                self._ledger_action(ledger, _table_set_changes(ledger["tables"] - 1)),
                self.items.delete_action(("tables", table), required),
                self.items.delete_action(("ids", table_item["table_id"]), {}),
            ]
            if self.items.write(actions):
                break
        with self.items.clean_up():
            for epoch in epochs:
                self.items.remove(self.items.query(f"commits {epoch}"))
        return True

    def tail(self, table: str) -> Tail | None:
        """The table's newest version, and its commits that are not published; None if the table is not known."""
        item_and_tail = self._item_with_tail(table)
        return None if item_and_tail is None else item_and_tail[1]

    def _item_with_tail(self, table: str) -> tuple[Item, Tail] | None:
        """The table's item, and its commits that are not published, read in one consistent state; None if the table is not
        known.
        """
        if _is_too_long(table):
            return None
        for _ in self.items.tries():
            (table_item,) = self.items.get(("tables", table))
            if table_item is None:
                return None
            unpublished = (padded(table_item["published"] + 1), padded(table_item["version"]))
            items = (
                list(self.items.query(f"commits {table_item['epoch']}", between=unpublished))
                if unpublished[0] <= unpublished[1]
                else []
            )
            if len(items) == table_item["version"] - table_item["published"]:  # otherwise the table was forgotten in the meantime
                return table_item, Tail(
                    table_item["version"], tuple(ratified_of(table, item) for item in items), table_item["table_id"]
                )
        raise AssertionError("unreachable")

    def tail_in(self, transaction: str, table: str) -> Tail | None:
        """The table as the transaction sees it: its version when the transaction began (base), then the proposed commits."""
        begun = self.find(transaction)
        for _ in self.items.tries():
            if (item_and_tail := self._item_with_tail(table)) is None:
                return None
            table_item, tail = item_and_tail
            base, is_still_registered = self._find_version_at(table_item, table, begun.moment)
            if is_still_registered:
                break
        if base is None:
            raise not_remembered_error(self.shown, table, transaction)
        proposed_commits = tuple(ratified_of(table, item) for item in self._query_proposals(transaction, table))
        if proposed_commits and proposed_commits[0].version != base + 1:  # they belong to a table that was at this place before
            raise not_remembered_error(self.shown, table, transaction)
        self.find(transaction)  # if the transaction has ended meanwhile, some proposals may have been deleted
        commits = (*(commit for commit in tail.commits if commit.version <= base), *proposed_commits)
        return replace(tail, version=base + len(proposed_commits), commits=commits, base=base)

    # ------------------------------------------------------------ commits

    def ratify(
        self,
        commits: Sequence[Ratified],
        *,
        expected: Mapping[str, int] | None = None,
        transaction: str | None = None,
        token: str | None = None,
    ) -> int:
        """Make all commits versions of their tables, or none; returns the moment. Parameters as in Ledger.ratify."""
        call = str(uuid.uuid4())
        self.items.check_length("token", token or "", LONGEST_HASH_BYTES)
        commits_by_table: dict[str, list[Ratified]] = {}  # the commits by table
        for commit in commits:
            commits_by_table.setdefault(commit.table, []).append(commit)
        expected_versions = dict(expected or {})
        # moment: of this call. tried_ledger: the ledger's item on which the last attempt depended. Both are set by an attempt.
        moment, tried_ledger = -1, Item()
        for number in self.items.tries(has_last_look=True):
            names = [*commits_by_table, *(table for table in expected_versions if table not in commits_by_table)]
            keys = [LEDGER, transaction_key(transaction or ""), token_key(token or ""), *(("tables", name) for name in names)]
            ledger_item, transaction_item, token_item, *items_of_tables = self.items.get(*keys)
            ledger = self._require_ledger(ledger_item)
            table_items = dict(zip(names, items_of_tables, strict=True))
            earlier_moment = self._moment_of_call(call, transaction_item, token_item, commits_by_table, table_items)
            if earlier_moment is not None:
                moment = earlier_moment
                break
            if transaction is not None:
                require_open(transaction, transaction_item)  # raises if the transaction has ended
            for table, version in expected_versions.items():
                newest = None if (item := table_items[table]) is None else item["version"]
                if newest != version:
                    raise version_taken_error(table, version, newest)
            # The times of moments never decrease, even if the clock of this machine is behind.
            now = max(now_ms(), ledger["time_ms"])
            moment = ledger["moment"] + 1
            actions = [self._ledger_action(ledger, {"moment": moment, "time_ms": now}), self._add_moment_action(moment, now)]
            for table, group in commits_by_table.items():
                actions += self._append_actions(table, group, table_items[table], moment, call)
            for table, version in expected_versions.items():
                if table not in commits_by_table:
                    actions.append(self.items.check_action(("tables", table), {"version": version}))
            if transaction is not None:
                changes = {"state": COMMITTED, "call": call, "committed": moment}
                actions.append(self.items.update_action(transaction_key(transaction), changes, {"state": OPEN}))
            if token is not None:
                actions.append(self._token_action(token, token_item, moment, call))
            if number == READ_ONLY_ATTEMPT:  # the last attempt did not succeed so far, but it may still be under way
                if self._has_ledger_changed(tried_ledger, ledger):
                    raise contended_error(self.shown, dynamodb_items.CONTENTION_SECONDS)
                continue  # the outcome is unknown: `tries` raises CoordinatorUnavailableError
            tried_ledger = ledger
            if self.items.write(actions):
                break
        with self.items.clean_up():
            if transaction is not None:
                self._drop_proposals(transaction)
            self._trim_moments(moment)
        return moment

    def _moment_of_call(
        self,
        call: str,
        transaction_item: Item | None,
        token_item: Item | None,
        commits_by_table: Mapping[str, list[Ratified]],
        table_items: Mapping[str, Item | None],
    ) -> int | None:
        """The moment of this call of `ratify`, if it was carried out but its reply was lost."""
        if transaction_item is not None and transaction_item.get("call") == call:
            return int(transaction_item["committed"])
        if token_item is not None and token_item.get("call") == call:
            return int(token_item["moment"])
        for table, group in commits_by_table.items():
            item = table_items[table]
            if item is not None and item["version"] >= group[0].version:
                (commit,) = self.items.get((f"commits {item['epoch']}", padded(group[0].version)))
                if commit is not None and commit["call"] == call:
                    return int(commit["moment"])
            break  # a call commits to all tables or to none, so the first table suffices
        return None

    def _append_actions(self, table: str, commits: list[Ratified], table_item: Item | None, moment: int, call: str) -> list[Item]:
        """The actions that append commits to a table. Raises VersionTakenError unless they are the versions after the newest."""
        newest = None if table_item is None else table_item["version"]
        versions = [commit.version for commit in commits]
        if table_item is None or versions != list(range(table_item["version"] + 1, table_item["version"] + 1 + len(commits))):
            raise version_taken_error(table, commits[0].version, newest)
        required = {"version": table_item["version"], "epoch": table_item["epoch"]}
        update = self.items.update_action(("tables", table), {"version": commits[-1].version}, required)
        return [update, *(self._add_commit_action(table_item["epoch"], commit, moment, call) for commit in commits)]

    def _token_action(self, token: str, token_item: Item | None, moment: int, call: str) -> Item:
        """The action that records the token. Raises TokenUsedError."""
        now = now_ms()
        if token_item is not None and token_item["time_ms"] >= now - TOKEN_RETENTION_MS:
            what = f"The call with the token {token} was already carried out; nothing was done again."
            raise TokenUsedError(what, moment=token_item["moment"])
        values = {"moment": moment, "time_ms": now, "call": call, "expireTime": (now + TOKEN_RETENTION_MS) // 1000}
        return self.items.put_action(
            token_key(token), values, required={} if token_item is None else {"call": token_item["call"]}
        )

    def turn(self, tables: Iterable[str]) -> contextlib.AbstractContextManager[None]:
        """No turns: a lock item would have to be polled, and to be deleted if the process that holds it dies."""
        return contextlib.nullcontext()

    def acknowledge(self, table: str, version: int) -> None:
        """Record that all commits up to this version are published, and delete some commits that are no longer retained."""
        for _ in self.items.tries():
            (table_item,) = self.items.get(("tables", table))
            if table_item is None or not table_item["published"] < version <= table_item["version"]:
                return
            required = {"published": table_item["published"], "epoch": table_item["epoch"]}
            if self.items.write([self.items.update_action(("tables", table), {"published": version}, required)]):
                break
        if table_item is not None and version > RETAINED_VERSIONS:
            old_versions = ("", padded(version - RETAINED_VERSIONS - 1))
            with self.items.clean_up():
                old_commits = self.items.query(f"commits {table_item['epoch']}", between=old_versions, limit=_MOST_DELETED)
                self.items.remove(itertools.islice(old_commits, _MOST_DELETED))

    # ------------------------------------------------------------ moments

    def moment(self, time_ms: int | None = None) -> int | None:
        """The newest moment, or the newest up to a time; None if the ledger does not reach back that far."""
        if time_ms is None:
            return int(self._read_ledger()["moment"])
        # `~` comes after all characters of these keys, so the range ends with the last moment of this time.
        moment_item = next(self.items.query("moments", between=("", f"{padded(time_ms)}~"), newest_first=True, limit=1), None)
        return None if moment_item is None else int(moment_item["moment"])

    def version_at(self, table: str, moment: int) -> int | None:
        """The table's version at a moment; None if the table or its version then is not known."""
        if _is_too_long(table):
            return None
        for _ in self.items.tries():
            (table_item,) = self.items.get(("tables", table))
            if table_item is None:
                return None
            version, is_still_registered = self._find_version_at(table_item, table, moment)
            if is_still_registered:
                return version
        raise AssertionError("unreachable")

    def _find_version_at(self, table_item: Item, table: str, moment: int) -> tuple[int | None, bool]:
        """Returns the result of version_at, and whether it is valid: if the table was forgotten during the search, some commits
        may have been deleted, and the caller searches again. table_item: as it was read before."""
        oldest = None  # the oldest version whose commit the ledger has
        for item in self.items.query(f"commits {table_item['epoch']}", newest_first=True, limit=_FIRST_QUERY_COMMITS):
            oldest = int(item[RANGE])
            if item["moment"] <= moment:
                return oldest, True
        (item_after,) = self.items.get(("tables", table))
        # Commits before the oldest one are not known, unless it is the first one after the table was registered.
        reaches_back = table_item["first_moment"] <= moment and oldest in (None, table_item["first_version"] + 1)
        version = int(table_item["first_version"]) if reaches_back else None
        is_still_registered = item_after is not None and item_after["epoch"] == table_item["epoch"]
        return version, is_still_registered

    def _trim_moments(self, moment: int) -> None:
        """Delete old moments at every hundredth moment, up to two hundred, so that more are deleted than are added."""
        if moment > RETAINED_MOMENTS and moment % _MOST_DELETED == 0:
            old_moments = itertools.islice(self.items.query("moments", limit=2 * _MOST_DELETED), 2 * _MOST_DELETED)
            self.items.remove(item for item in old_moments if item["moment"] < moment - RETAINED_MOMENTS)

    def moment_of(self, token: str) -> int | None:
        """The moment of the `ratify` call that used a token; None if no such call is known."""
        self.items.check_length("token", token, LONGEST_HASH_BYTES)
        (item,) = self.items.get(token_key(token))
        return None if item is None else int(item["moment"])

    # ------------------------------------------------------------ items

    def _ledger_action(self, ledger: Item, changes: Item) -> Item:
        """The action that changes the ledger's item, on the condition that no other call has changed it since it was read as
        `ledger`. So calls that change the ledger's state happen one after the other."""
        return self.items.update_action(LEDGER, changes, {name: ledger[name] for name in _UNIQUE_ATTRIBUTES})

    def _has_ledger_changed(self, tried_ledger: Item, ledger: Item) -> bool:
        """Whether a step that requires the ledger's earlier item can no longer succeed, even if it arrives late."""
        return any(tried_ledger[name] != ledger[name] for name in _UNIQUE_ATTRIBUTES)

    def _add_moment_action(self, moment: int, now: int) -> Item:
        """The action that adds a moment with its time. now: ms since 1970."""
        return self.items.put_action(("moments", f"{padded(now)} {padded(moment)}"), {"moment": moment})

    def _add_commit_action(self, epoch: str, commit: Ratified, moment: int, call: str) -> Item:
        """The action that adds a ratified commit."""
        values = commit_values(commit) | {"moment": moment, "call": call}
        return self.items.put_action((f"commits {epoch}", padded(commit.version)), values)


def _check_no_duplicates(ledger: str, tables: Sequence[Restored]) -> None:
    """Raises as `restore` if two of these tables have the same place or the same id. A SQL database finds this when it inserts
    the second one; DynamoDB writes all items at once. ledger: the URL, for messages."""
    ids, places = dict[str, str](), dict[str, Restored]()
    for table in tables:
        same_place = places.get(table.table)
        if same_place is not None and same_place.table_id == table.table_id:
            raise version_taken_error(table.table, table.published, same_place.published)
        if same_place is not None or ids.get(table.table_id, table.table) != table.table:
            raise known_at_other_place_error(ledger, table.table, ids.get(table.table_id, table.table))
        ids[table.table_id], places[table.table] = table.table, table


def _is_too_long(table: str) -> bool:
    """Whether `register` refuses the place, so that no table is known there."""
    return len(table.encode()) > LONGEST_RANGE_BYTES


def _table_set_changes(tables: int) -> Item:
    """The changes of the ledger's item when the set of known tables changes. tables: how many tables are known after the
    change."""
    return {"tables": tables, "changed": str(uuid.uuid4())}
