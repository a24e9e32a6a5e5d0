"""A ledger in a DynamoDB table: many processes of many machines, and no server of one's own.

    dynamodb://TABLE?region=eu-west-1&endpoint=http://localhost:8000

The table is one that exists, with the keys `tablePath` (hash) and `fileName` (range), both text: those that delta-spark's
S3DynamoDBLogStore uses. An item's hash key says what it is:

    ledger                  one: the ledger's identity, the newest moment and when it was, how many tables there are, who last
                            changed which they are
    tables, ids             one a table, by place, and by its id
    commits <epoch>         one a ratified commit, by version. epoch: of the table since it was registered
    moments                 one a moment, by time
    open, transaction <id>  transactions by the time that they are looked after; each with its proposals, the reads that it holds,
                            and the parts of both
    token <token>           one a token of a call that may be repeated

What changes several items is one TransactWriteItems, on the condition that the ledger's item is as it was read. Each call is
known by a text of its own, which stays in what it wrote: so one whose reply was lost finds out that it was carried out. What goes
behind that is clean-up: where it fails the call has succeeded, and what is left is taken away later, or stays and is never read.
Items with `expireTime` (seconds since 1970) are not wanted behind it: DynamoDB deletes them where that attribute is the table's
time to live.
"""

from __future__ import annotations

import contextlib
import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from delta_py.coordinator import dynamodb_items
from delta_py.coordinator.dynamodb_items import HASH, LOOK, RANGE, DynamoDbItems, Item, Key, keyed
from delta_py.coordinator.ledger import (
    KEPT_COMMITTED_MS,
    Begun,
    Inventory,
    Proposed,
    Ratified,
    Restored,
    Tail,
    TokenUsedError,
    another_ledger,
    contended,
    ended,
    known_otherwise,
    not_remembered,
    taken,
    unavailable,
)

_LONGEST_HASH_BYTES, _LONGEST_RANGE_BYTES = 2000, 900  # of the caller's texts in keys, which have 2048 and 1024 bytes
_PART_BYTES = 300_000  # an item has at most 400 KB
_KEPT_VERSIONS = 10_000  # of a table, behind the newest that is published
_KEPT_MOMENTS = 100_000
_TRIMMED_AT_ONCE = 100
_FIRST_LOOKED_AT = 16  # newest commits, when a version of some moment is looked for
_KEPT_TOKENS_MS = 24 * 3600 * 1000
_OPEN, _COMMITTED, _ABORTED = "open", "committed", "aborted"
_LEDGER: Key = ("ledger", "ledger")
_STEPS = ("identity", "moment", "changed")  # of the ledger's item, which never is as it was


class DynamoDbLedger:
    """Ledger. Raises InvalidOptionError for a URL that it cannot use, CoordinatorUnavailableError."""

    identity: str

    def __init__(self, url: str) -> None:
        self.items = DynamoDbItems(url)
        self.shown = self.items.shown
        self.identity = self._prepared()

    def _prepared(self) -> str:
        new = {"identity": str(uuid.uuid4()), "moment": 0, "time_ms": 0, "tables": 0, "changed": ""}
        if self.items.get(_LEDGER)[0] is None:
            self.items.write([self.items.put(_LEDGER, new)])  # else another process was quicker
        return str(self._ledger()["identity"])

    # ------------------------------------------------------------ tables

    def register(self, table: str, version: int, table_id: str) -> None:
        self.items.check_length("place of a table", table, _LONGEST_RANGE_BYTES)
        self.items.check_length("id of a table", table_id, _LONGEST_RANGE_BYTES)
        for _ in self.items.tries():
            ledger, known, owner = self.items.get(_LEDGER, ("tables", table), ("ids", table_id))
            ledger = self._present(ledger)
            if ledger["identity"] != self.identity:  # the database was made anew since it was opened
                raise another_ledger(self.shown, ledger["identity"], self.identity)
            if self._is_known(table, table_id, known, owner):
                return
            actions = self._added(table, version, version, table_id, ledger["moment"], str(uuid.uuid4()))
            if self.items.write([self._step(ledger, _changed(ledger["tables"] + 1)), *actions]):
                return

    def _is_known(self, table: str, table_id: str, known: Item | None, owner: Item | None) -> bool:
        if known is not None and known["table_id"] != table_id:
            raise known_otherwise(self.shown, table, table)
        if owner is not None and owner["place"] != table:
            raise known_otherwise(self.shown, table, owner["place"])
        return known is not None

    def _added(self, table: str, published: int, version: int, table_id: str, moment: int, epoch: str) -> list[Item]:
        values = {"table_id": table_id, "version": version, "published": published, "epoch": epoch}
        first = {"first_version": published, "first_moment": moment}
        return [self.items.put(("tables", table), values | first), self.items.put(("ids", table_id), {"place": table})]

    def inventory(self) -> Inventory:
        for _ in self.items.tries():
            ledger = self._ledger()
            places = tuple(sorted(item[RANGE] for item in self.items.query("tables")))
            again = self._ledger()
            if (again["identity"], again["changed"]) == (ledger["identity"], ledger["changed"]):
                self.identity = ledger["identity"]
                return Inventory(self.identity, places)
        raise AssertionError("unreachable")

    def restore(self, identity: str, tables: Sequence[Restored]) -> None:
        call = str(uuid.uuid4())
        epochs = [f"{call} {number}" for number in range(len(tables))]
        for one in tables:
            self.items.check_length("place of a table", one.table, _LONGEST_RANGE_BYTES)
            if [commit.version for commit in one.commits] != list(range(one.published + 1, one.published + 1 + len(one.commits))):
                raise taken(one.table, one.commits[0].version, one.published)
        _check_different(self.shown, tables)
        commits = [commit for one in tables for commit in one.commits]
        for _ in self.items.tries():
            keys = [key for one in tables for key in (("tables", one.table), ("ids", one.table_id))]
            first, *found = self.items.get(_LEDGER, *keys)
            ledger = self._present(first)
            if found and found[0] is not None and found[0]["epoch"] == epochs[0]:
                break  # it was carried out, and its reply was lost
            if ledger["identity"] != identity and ledger["tables"]:
                raise another_ledger(self.shown, ledger["identity"], identity)
            for one, known, owner in zip(tables, found[::2], found[1::2], strict=True):
                if self._is_known(one.table, one.table_id, known, owner):
                    assert known is not None
                    raise taken(one.table, one.published, known["version"])
            moment, now = ledger["moment"] + bool(commits), max(_now_ms(), ledger["time_ms"])
            changes = _changed(ledger["tables"] + len(tables)) | {"identity": identity}
            if commits:
                changes |= {"moment": moment, "time_ms": now}
            actions = [self._step(ledger, changes), *([self._moment_item(moment, now)] if commits else [])]
            for one, epoch in zip(tables, epochs, strict=True):
                newest = one.published + len(one.commits)
                actions += self._added(one.table, one.published, newest, one.table_id, ledger["moment"], epoch)
                actions += [self._commit_item(epoch, commit, moment, call) for commit in one.commits]
            if self.items.write(actions):
                break
        self.identity = identity

    def forget(self, table: str, version: int | None = None) -> bool:
        if _is_too_long(table):
            return True
        epochs = set[str]()
        for _ in self.items.tries():
            ledger, known = self.items.get(_LEDGER, ("tables", table))
            ledger = self._present(ledger)
            if known is None or (epochs and known["epoch"] not in epochs):
                break  # the second: it was carried out, and its reply was lost; somebody has registered the table since
            if version is not None and (known["version"], known["published"]) != (version, version):
                return False
            epochs.add(known["epoch"])
            same = {name: known[name] for name in ("epoch", "version", "published")}
            actions = [
                self._step(ledger, _changed(ledger["tables"] - 1)),
                self.items.delete(("tables", table), same),
                self.items.delete(("ids", known["table_id"]), {}),
            ]
            if self.items.write(actions):
                break
        with self.items.clean_up():
            for epoch in epochs:
                self.items.remove(self.items.query(f"commits {epoch}"))
        return True

    def tail(self, table: str) -> Tail | None:
        known = self._known_with_tail(table)
        return None if known is None else known[1]

    def _known_with_tail(self, table: str) -> tuple[Item, Tail] | None:
        if _is_too_long(table):
            return None
        for _ in self.items.tries():
            (known,) = self.items.get(("tables", table))
            if known is None:
                return None
            behind = (_padded(known["published"] + 1), _padded(known["version"]))
            items = list(self.items.query(f"commits {known['epoch']}", between=behind)) if behind[0] <= behind[1] else []
            if len(items) == known["version"] - known["published"]:  # else it was forgotten meanwhile
                return known, Tail(known["version"], tuple(_ratified(table, item) for item in items), known["table_id"])
        raise AssertionError("unreachable")

    def tail_in(self, transaction: str, table: str) -> Tail | None:
        begun = self.find(transaction)
        for _ in self.items.tries():
            if (found := self._known_with_tail(table)) is None:
                return None
            known, tail = found
            base, is_known_still = self._version_of(known, table, begun.moment)
            if is_known_still:
                break
        if base is None:
            raise not_remembered(self.shown, table, transaction)
        own = tuple(_ratified(table, item) for item in self._headers(transaction, table))
        if own and own[0].version != base + 1:  # they are of a table that was there before
            raise not_remembered(self.shown, table, transaction)
        self.find(transaction)
        commits = (*(one for one in tail.commits if one.version <= base), *own)
        return replace(tail, version=base + len(own), commits=commits, base=base)

    # ------------------------------------------------------------ commits

    def ratify(
        self,
        commits: Sequence[Ratified],
        *,
        expected: Mapping[str, int] | None = None,
        transaction: str | None = None,
        token: str | None = None,
    ) -> int:
        call = str(uuid.uuid4())
        self.items.check_length("token", token or "", _LONGEST_HASH_BYTES)
        groups: dict[str, list[Ratified]] = {}
        for commit in commits:
            groups.setdefault(commit.table, []).append(commit)
        others = dict(expected or {})
        moment, tried = -1, Item()  # until the first try
        for number in self.items.tries(looks_again=True):
            names = [*groups, *(table for table in others if table not in groups)]
            keys = [_LEDGER, _transaction_key(transaction or ""), _token_key(token or ""), *(("tables", name) for name in names)]
            first, begun, used, *known_tables = self.items.get(*keys)
            ledger, known = self._present(first), dict(zip(names, known_tables, strict=True))
            done = self._own_moment(call, begun, used, groups, known)
            if done is not None:
                moment = done
                break
            if transaction is not None:
                _check_open(transaction, begun)
            for table, version in others.items():
                newest = None if (item := known[table]) is None else item["version"]
                if newest != version:
                    raise taken(table, version, newest)
            moment, now = ledger["moment"] + 1, max(_now_ms(), ledger["time_ms"])
            actions = [self._step(ledger, {"moment": moment, "time_ms": now}), self._moment_item(moment, now)]
            for table, group in groups.items():
                actions += self._appended(table, group, known[table], moment, call)
            for table, version in others.items():
                if table not in groups:
                    actions.append(self.items.check(("tables", table), {"version": version}))
            if transaction is not None:
                changes = {"state": _COMMITTED, "call": call, "committed": moment}
                actions.append(self.items.update(_transaction_key(transaction), changes, {"state": _OPEN}))
            if token is not None:
                actions.append(self._used_token(token, used, moment, call))
            if number == LOOK:
                if self._has_moved(tried, ledger):
                    raise contended(self.shown, dynamodb_items.CONTENTION_SECONDS)
                continue
            tried = ledger
            if self.items.write(actions):
                break
        with self.items.clean_up():
            if transaction is not None:
                self._drop_proposals(transaction)
            self._trim_moments(moment)
        return moment

    def _own_moment(
        self,
        call: str,
        begun: Item | None,
        used: Item | None,
        groups: Mapping[str, list[Ratified]],
        known: Mapping[str, Item | None],
    ) -> int | None:
        """The moment of this call of `ratify`, where it was carried out and that was not answered."""
        if begun is not None and begun.get("call") == call:
            return int(begun["committed"])
        if used is not None and used.get("call") == call:
            return int(used["moment"])
        for table, group in groups.items():
            item = known[table]
            if item is not None and item["version"] >= group[0].version:
                (commit,) = self.items.get((f"commits {item['epoch']}", _padded(group[0].version)))
                if commit is not None and commit["call"] == call:
                    return int(commit["moment"])
            break
        return None

    def _appended(self, table: str, commits: list[Ratified], known: Item | None, moment: int, call: str) -> list[Item]:
        newest = None if known is None else known["version"]
        versions = [one.version for one in commits]
        if known is None or versions != list(range(known["version"] + 1, known["version"] + 1 + len(commits))):
            raise taken(table, commits[0].version, newest)
        same = {"version": known["version"], "epoch": known["epoch"]}
        update = self.items.update(("tables", table), {"version": commits[-1].version}, same)
        return [update, *(self._commit_item(known["epoch"], one, moment, call) for one in commits)]

    def _used_token(self, token: str, used: Item | None, moment: int, call: str) -> Item:
        now = _now_ms()
        if used is not None and used["time_ms"] >= now - _KEPT_TOKENS_MS:
            what = f"What the token {token} stands for was done already; nothing was done again."
            raise TokenUsedError(what, moment=used["moment"])
        values = {"moment": moment, "time_ms": now, "call": call, "expireTime": (now + _KEPT_TOKENS_MS) // 1000}
        return self.items.put(_token_key(token), values, same={} if used is None else {"call": used["call"]})

    def turn(self, tables: Iterable[str]) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # an item that one of them holds would have to be polled, and to be taken from the dead

    def acknowledge(self, table: str, version: int) -> None:
        for _ in self.items.tries():
            (known,) = self.items.get(("tables", table))
            if known is None or not known["published"] < version <= known["version"]:
                return
            same = {"published": known["published"], "epoch": known["epoch"]}
            if self.items.write([self.items.update(("tables", table), {"published": version}, same)]):
                break
        if known is not None and version > _KEPT_VERSIONS:
            below = ("", _padded(version - _KEPT_VERSIONS - 1))
            with self.items.clean_up():
                old = self.items.query(f"commits {known['epoch']}", between=below, limit=_TRIMMED_AT_ONCE)
                self.items.remove(itertools.islice(old, _TRIMMED_AT_ONCE))

    # ------------------------------------------------------------ moments

    def moment(self, time_ms: int | None = None) -> int | None:
        if time_ms is None:
            return int(self._ledger()["moment"])
        found = next(self.items.query("moments", between=("", f"{_padded(time_ms)}~"), newest_first=True, limit=1), None)
        return None if found is None else int(found["moment"])

    def version_at(self, table: str, moment: int) -> int | None:
        if _is_too_long(table):
            return None
        for _ in self.items.tries():
            (known,) = self.items.get(("tables", table))
            if known is None:
                return None
            version, is_known_still = self._version_of(known, table, moment)
            if is_known_still:
                return version
        raise AssertionError("unreachable")

    def _version_of(self, known: Item, table: str, moment: int) -> tuple[int | None, bool]:
        """As version_at has it, and whether that is so: not where the table was forgotten while it was looked for."""
        oldest = None
        for item in self.items.query(f"commits {known['epoch']}", newest_first=True, limit=_FIRST_LOOKED_AT):
            oldest = int(item[RANGE])
            if item["moment"] <= moment:
                return oldest, True
        (again,) = self.items.get(("tables", table))
        is_told = known["first_moment"] <= moment and oldest in (None, known["first_version"] + 1)
        return (int(known["first_version"]) if is_told else None), again is not None and again["epoch"] == known["epoch"]

    def _trim_moments(self, moment: int) -> None:
        if moment > _KEPT_MOMENTS and moment % _TRIMMED_AT_ONCE == 0:
            old = itertools.islice(self.items.query("moments", limit=2 * _TRIMMED_AT_ONCE), 2 * _TRIMMED_AT_ONCE)
            self.items.remove(item for item in old if item["moment"] < moment - _KEPT_MOMENTS)

    # ------------------------------------------------------------ transactions over tables

    def begin(self, seconds: float) -> Begun:
        now = _now_ms()
        for item in self.items.query("open", between=("", f"{_padded(now - 1)}~")):
            self._give_up(item, now)
        identity, ends_ms = str(uuid.uuid4()), now + round(seconds * 1000)
        moment = int(self._ledger()["moment"])
        values = {"moment": moment, "state": _OPEN, "ends_ms": ends_ms}
        listed = self.items.put(_listed_key(ends_ms, identity), {"transaction": identity})
        for _ in self.items.tries():
            if self.items.write([self.items.put(_transaction_key(identity), values), listed]):
                break
            if self.items.get(_transaction_key(identity))[0] is not None:
                break
        return Begun(identity, moment)

    def _give_up(self, listed: Item, now: int) -> None:
        """Take away what is left of a transaction whose time is over. Of one that was committed that it was stays for as long as
        it is to be known, and it is listed for then."""
        transaction = listed["transaction"]
        key = _transaction_key(transaction)
        (item,) = self.items.get(key)
        if item is not None and item["state"] == _COMMITTED and item["ends_ms"] >= now - KEPT_COMMITTED_MS:
            later = _listed_key(item["ends_ms"] + KEPT_COMMITTED_MS, transaction)
            self.items.put_alone(keyed(later) | {"transaction": transaction})
        elif item is not None and not self.items.write([self.items.delete(key, {"state": item["state"]})]):
            return  # it has ended meanwhile: the next one sees to it
        self._drop_proposals(transaction)  # behind the transaction, so that none has only a part of its proposals
        self.items.delete_alone((listed[HASH], listed[RANGE]))  # last, so that the next one finishes it where this one dies

    def find(self, transaction: str) -> Begun:
        (item,) = self.items.get(_transaction_key(transaction))
        return Begun(transaction, _check_open(transaction, item))

    def propose(self, transaction: str, proposed: Proposed) -> None:
        commit, described, call = proposed.commit, proposed.described, str(uuid.uuid4())
        key = (_transaction_key(transaction)[0], f"proposal {commit.table} {_padded(commit.version)}")
        self.items.check_length("place of a table", commit.table, _LONGEST_RANGE_BYTES)
        parts = self._put_parts(transaction, call, described)
        values = _values(commit) | {"place": commit.table, "call": call, "parts": parts}
        if not self._put_in(transaction, key, values):
            raise taken(commit.table, commit.version, commit.version)

    def _put_parts(self, transaction: str, call: str, data: bytes) -> int:
        """How many there are. They are found once an item is there that has this call."""
        key = _transaction_key(transaction)
        (begun,) = self.items.get(key)
        _check_open(transaction, begun)
        assert begun is not None
        expires = (begun["ends_ms"] + _KEPT_TOKENS_MS) // 1000  # for those that are put behind the transaction's end
        pieces = [data[begin : begin + _PART_BYTES] for begin in range(0, len(data), _PART_BYTES)]
        for number, piece in enumerate(pieces):
            self.items.put_alone({HASH: key[0], RANGE: f"part {call} {_padded(number)}", "bytes": piece, "expireTime": expires})
        return len(pieces)

    def _put_in(self, transaction: str, key: Key, values: Item) -> bool:
        """An item of a transaction that is under way; False where another one of that key is there."""
        for _ in self.items.tries():
            present, begun = self.items.get(key, _transaction_key(transaction))
            if present is not None and present["call"] == values["call"]:
                return True
            _check_open(transaction, begun)
            if present is not None:
                return False
            is_open = self.items.check(_transaction_key(transaction), {"state": _OPEN})
            if self.items.write([is_open, self.items.put(key, values)]):
                return True
        raise AssertionError("unreachable")

    def proposed(self, transaction: str, table: str | None = None) -> list[Proposed]:
        whole = self._of_open(transaction, lambda: self._headers(transaction, table))
        return _as_proposed(whole)

    def hold_reads(self, transaction: str, table: str, reads: bytes) -> None:
        call = str(uuid.uuid4())
        parts = self._put_parts(transaction, call, reads)
        key = (_transaction_key(transaction)[0], f"reads {call}")
        self._put_in(transaction, key, {"place": table, "call": call, "parts": parts})

    def held_reads(self, transaction: str) -> dict[str, list[bytes]]:
        held: dict[str, list[bytes]] = {}
        part = _transaction_key(transaction)[0]
        for item, reads in self._of_open(transaction, lambda: list(self.items.query(part, begins="reads "))):
            held.setdefault(item["place"], []).append(reads)
        return held

    def _of_open(self, transaction: str, find: Callable[[], list[Item]]) -> list[tuple[Item, bytes]]:
        """Items of a transaction that is under way, with what their parts say; none of one that has ended."""
        if self.state_of(transaction) != _OPEN:
            return []
        headers = find()
        whole = self._whole(transaction, headers)
        if self.state_of(transaction) != _OPEN:
            return []
        if len(whole) != len(headers):
            raise unavailable(self.shown, f"parts of what the transaction {transaction} has proposed or read were deleted")
        return whole

    def _whole(self, transaction: str, headers: list[Item]) -> list[tuple[Item, bytes]]:
        """Those of which all parts are there. Of a transaction that has ended another process may have taken away some."""
        whole = []
        for item in headers:
            parts = list(self.items.query(_transaction_key(transaction)[0], begins=f"part {item['call']} "))
            if len(parts) == item["parts"]:
                whole.append((item, b"".join(part["bytes"] for part in parts)))
        return whole

    def _headers(self, transaction: str, table: str | None) -> list[Item]:
        items = self.items.query(_transaction_key(transaction)[0], begins="proposal " if table is None else f"proposal {table} ")
        return [item for item in items if table in (None, item["place"])]

    def state_of(self, transaction: str) -> str | None:
        (item,) = self.items.get(_transaction_key(transaction))
        return None if item is None else str(item["state"])

    def abort(self, transaction: str) -> list[Proposed]:
        call = str(uuid.uuid4())
        for _ in self.items.tries():
            (item,) = self.items.get(_transaction_key(transaction))
            if item is not None and item.get("call") == call:
                break
            if item is None or item["state"] != _OPEN:
                return []
            changes = {"state": _ABORTED, "call": call}
            if self.items.write([self.items.update(_transaction_key(transaction), changes, {"state": _OPEN})]):
                break
        found = self._whole(transaction, self._headers(transaction, None))
        with self.items.clean_up():
            self._drop_proposals(transaction)
        return _as_proposed(found)

    def _drop_proposals(self, transaction: str) -> None:
        for begins in ("proposal ", "reads ", "part "):
            self.items.remove(self.items.query(_transaction_key(transaction)[0], begins=begins))

    def moment_of(self, token: str) -> int | None:
        self.items.check_length("token", token, _LONGEST_HASH_BYTES)
        (item,) = self.items.get(_token_key(token))
        return None if item is None else int(item["moment"])

    # ------------------------------------------------------------ items

    def _ledger(self) -> Item:
        return self._present(self.items.get(_LEDGER)[0])

    def _present(self, ledger: Item | None) -> Item:
        if ledger is None:
            raise unavailable(self.shown, "the item that says which ledger it is was deleted")
        return ledger

    def _step(self, ledger: Item, changes: Item) -> Item:
        return self.items.update(_LEDGER, changes, {name: ledger[name] for name in _STEPS})

    def _has_moved(self, before: Item, ledger: Item) -> bool:
        """Whether a step that was to follow the ledger's item before can not be carried out any more, even if it arrives late."""
        return any(before[name] != ledger[name] for name in _STEPS)

    def _moment_item(self, moment: int, now: int) -> Item:
        return self.items.put(("moments", f"{_padded(now)} {_padded(moment)}"), {"moment": moment})

    def _commit_item(self, epoch: str, commit: Ratified, moment: int, call: str) -> Item:
        return self.items.put((f"commits {epoch}", _padded(commit.version)), _values(commit) | {"moment": moment, "call": call})


def _check_different(ledger: str, tables: Sequence[Restored]) -> None:
    """As a database that takes one after the other does. Raises what `restore` does."""
    ids, places = dict[str, str](), dict[str, Restored]()
    for one in tables:
        before = places.get(one.table)
        if before is not None and before.table_id == one.table_id:
            raise taken(one.table, one.published, before.published)
        if before is not None or ids.get(one.table_id, one.table) != one.table:
            raise known_otherwise(ledger, one.table, ids.get(one.table_id, one.table))
        ids[one.table_id], places[one.table] = one.table, one


def _is_too_long(table: str) -> bool:
    """Whether `register` refuses the place, so that no table is known there."""
    return len(table.encode()) > _LONGEST_RANGE_BYTES


def _changed(tables: int) -> Item:
    """Of the ledger's item where other tables are known than before."""
    return {"tables": tables, "changed": str(uuid.uuid4())}


def _values(commit: Ratified) -> Item:
    return {"version": commit.version, "name": commit.name, "size_bytes": commit.size_bytes, "commit_ms": commit.time_ms}


def _ratified(table: str, item: Item) -> Ratified:
    return Ratified(table, item["version"], item["name"], item["size_bytes"], item["commit_ms"])


def _as_proposed(items: list[tuple[Item, bytes]]) -> list[Proposed]:
    """By table and version."""
    found = [Proposed(_ratified(item["place"], item), described) for item, described in items]
    return sorted(found, key=lambda one: (one.commit.table, one.commit.version))


def _check_open(transaction: str, item: Item | None) -> int:
    """The moment of a transaction that is under way."""
    if item is None or item["state"] != _OPEN or item["ends_ms"] < _now_ms():
        raise ended(transaction, item["state"] if item is not None and item["state"] != _OPEN else None)
    return int(item["moment"])


def _transaction_key(transaction: str) -> Key:
    return f"transaction {transaction}", "transaction"


def _listed_key(ends_ms: int, transaction: str) -> Key:
    return "open", f"{_padded(ends_ms)} {transaction}"


def _token_key(token: str) -> Key:
    return f"token {token}", "token"


def _padded(number: int) -> str:
    return f"{number:020}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
