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
import logging
import os
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from delta_py.aws_clients import TIMEOUT_SECONDS, AwsAccess, TransactionCancelled, ask, aws_client
from delta_py.coordinator.ledger import (
    KEPT_COMMITTED_MS,
    Begun,
    CoordinatorUnavailableError,
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
from delta_py.errors import InvalidOptionError, StorageError, UnsupportedOperationError, shown
from delta_py.remote_requests import RETRY_SECONDS, until_answered

_log = logging.getLogger("delta_py")

_HASH, _RANGE = "tablePath", "fileName"
_TEXTS = ("region", "endpoint", "access_key_id", "secret_access_key", "session_token", "profile")
_SECONDS = {"request_timeout": TIMEOUT_SECONDS, "retry_timeout": RETRY_SECONDS}
_NO_CREDENTIALS = "Set up boto3's usual credentials, or have access_key_id and secret_access_key in the coordinator's URL."
_SHOWN = ("region", "endpoint")
_MOST_ITEMS = 100  # of one transaction in DynamoDB
_LONGEST_HASH_BYTES, _LONGEST_RANGE_BYTES = 2000, 900  # of the caller's texts in keys, which have 2048 and 1024 bytes
_PART_BYTES = 300_000  # an item has at most 400 KB
_CONTENTION_SECONDS = 60.0
_LONGEST_WAIT_SECONDS = 1.0
_KEPT_VERSIONS = 10_000  # of a table, behind the newest that is published
_KEPT_MOMENTS = 100_000
_TRIMMED_AT_ONCE = 100
_FIRST_LOOKED_AT = 16  # newest commits, when a version of some moment is looked for
_KEPT_TOKENS_MS = 24 * 3600 * 1000
_OPEN, _COMMITTED, _ABORTED = "open", "committed", "aborted"
_WORTH_ANOTHER_TRY = {"None", "ConditionalCheckFailed", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}

Key = tuple[str, str]
Item = dict[str, Any]
_LEDGER: Key = ("ledger", "ledger")
_STEPS = ("identity", "moment", "changed")  # of the ledger's item, which never is as it was
_LOOK = -1


class DynamoDbLedger:
    """Ledger. Raises InvalidOptionError for a URL that it cannot use, CoordinatorUnavailableError."""

    identity: str

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        unknown = sorted(set(given) - {*_TEXTS, *_SECONDS})
        if not parts.netloc or "@" in parts.netloc or parts.path.strip("/") or unknown:
            what = f"it has {', '.join(unknown)}" if unknown else "it names no table, or more than a table"
            raise InvalidOptionError(
                f"The URL of a coordinator in DynamoDB cannot be used: {what}. Write dynamodb://TABLE, with any of "
                f"{', '.join((*_TEXTS, *_SECONDS))} behind a question mark.",
                option="coordinator",
            )
        self._name = parts.netloc
        seconds = {name: _number(name, given.get(name), default) for name, default in _SECONDS.items()}
        access = AwsAccess(_NO_CREDENTIALS, timeout_seconds=seconds["request_timeout"])
        self._access = replace(access, **{name: given[name] for name in _TEXTS if name in given})  # type: ignore[arg-type]
        self._retry_seconds = seconds["retry_timeout"]
        asked = "&".join(f"{name}={_without_user(given[name])}" for name in _SHOWN if name in given)
        self.shown = f"dynamodb://{self._name}{'?' if asked else ''}{asked}"
        self._made: tuple[int, Any] | None = None
        self.identity = self._prepared()

    def _prepared(self) -> str:
        new = {"identity": str(uuid.uuid4()), "moment": 0, "time_ms": 0, "tables": 0, "changed": ""}
        if self._get(_LEDGER)[0] is None:
            self._write([self._put(_LEDGER, new)])  # else another process was quicker
        return str(self._ledger()["identity"])

    # ------------------------------------------------------------ tables

    def register(self, table: str, version: int, table_id: str) -> None:
        self._check_length("place of a table", table, _LONGEST_RANGE_BYTES)
        self._check_length("id of a table", table_id, _LONGEST_RANGE_BYTES)
        for _ in self._tries():
            ledger, known, owner = self._get(_LEDGER, ("tables", table), ("ids", table_id))
            ledger = self._present(ledger)
            if ledger["identity"] != self.identity:  # the database was made anew since it was opened
                raise another_ledger(self.shown, ledger["identity"], self.identity)
            if self._is_known(table, table_id, known, owner):
                return
            actions = self._added(table, version, version, table_id, ledger["moment"], str(uuid.uuid4()))
            if self._write([self._step(ledger, _changed(ledger["tables"] + 1)), *actions]):
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
        return [self._put(("tables", table), values | first), self._put(("ids", table_id), {"place": table})]

    def inventory(self) -> Inventory:
        for _ in self._tries():
            ledger = self._ledger()
            places = tuple(sorted(item[_RANGE] for item in self._query("tables")))
            again = self._ledger()
            if (again["identity"], again["changed"]) == (ledger["identity"], ledger["changed"]):
                self.identity = ledger["identity"]
                return Inventory(self.identity, places)
        raise AssertionError("unreachable")

    def restore(self, identity: str, tables: Sequence[Restored]) -> None:
        call = str(uuid.uuid4())
        epochs = [f"{call} {number}" for number in range(len(tables))]
        for one in tables:
            self._check_length("place of a table", one.table, _LONGEST_RANGE_BYTES)
            if [commit.version for commit in one.commits] != list(range(one.published + 1, one.published + 1 + len(one.commits))):
                raise taken(one.table, one.commits[0].version, one.published)
        _check_different(self.shown, tables)
        commits = [commit for one in tables for commit in one.commits]
        for _ in self._tries():
            keys = [key for one in tables for key in (("tables", one.table), ("ids", one.table_id))]
            first, *found = self._get(_LEDGER, *keys)
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
            if self._write(actions):
                break
        self.identity = identity

    def forget(self, table: str, version: int | None = None) -> bool:
        if _is_too_long(table):
            return True
        epochs = set[str]()
        for _ in self._tries():
            ledger, known = self._get(_LEDGER, ("tables", table))
            ledger = self._present(ledger)
            if known is None or (epochs and known["epoch"] not in epochs):
                break  # the second: it was carried out, and its reply was lost; somebody has registered the table since
            if version is not None and (known["version"], known["published"]) != (version, version):
                return False
            epochs.add(known["epoch"])
            same = {name: known[name] for name in ("epoch", "version", "published")}
            actions = [
                self._step(ledger, _changed(ledger["tables"] - 1)),
                self._delete(("tables", table), same),
                self._delete(("ids", known["table_id"]), {}),
            ]
            if self._write(actions):
                break
        with self._clean_up():
            for epoch in epochs:
                self._remove(self._query(f"commits {epoch}"))
        return True

    def tail(self, table: str) -> Tail | None:
        known = self._known_with_tail(table)
        return None if known is None else known[1]

    def _known_with_tail(self, table: str) -> tuple[Item, Tail] | None:
        if _is_too_long(table):
            return None
        for _ in self._tries():
            (known,) = self._get(("tables", table))
            if known is None:
                return None
            behind = (_padded(known["published"] + 1), _padded(known["version"]))
            items = list(self._query(f"commits {known['epoch']}", between=behind)) if behind[0] <= behind[1] else []
            if len(items) == known["version"] - known["published"]:  # else it was forgotten meanwhile
                return known, Tail(known["version"], tuple(_ratified(table, item) for item in items), known["table_id"])
        raise AssertionError("unreachable")

    def tail_in(self, transaction: str, table: str) -> Tail | None:
        begun = self.find(transaction)
        for _ in self._tries():
            if (found := self._known_with_tail(table)) is None:
                return None
            known, tail = found
            base, is_known_still = self._version_of(known, table, begun.moment)
            if is_known_still:
                break
        if base is None:
            raise not_remembered(self.shown, table, transaction)
        own = tuple(_ratified(table, item) for item in self._headers(transaction, table))
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
        self._check_length("token", token or "", _LONGEST_HASH_BYTES)
        groups: dict[str, list[Ratified]] = {}
        for commit in commits:
            groups.setdefault(commit.table, []).append(commit)
        others = dict(expected or {})
        moment, tried = -1, Item()  # until the first try
        for number in self._tries(looks_again=True):
            names = [*groups, *(table for table in others if table not in groups)]
            keys = [_LEDGER, _transaction_key(transaction or ""), _token_key(token or ""), *(("tables", name) for name in names)]
            first, begun, used, *known_tables = self._get(*keys)
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
                    actions.append(self._check(("tables", table), {"version": version}))
            if transaction is not None:
                changes = {"state": _COMMITTED, "call": call, "committed": moment}
                actions.append(self._update(_transaction_key(transaction), changes, {"state": _OPEN}))
            if token is not None:
                actions.append(self._used_token(token, used, moment, call))
            if number == _LOOK:
                if self._has_moved(tried, ledger):
                    raise contended(self.shown, _CONTENTION_SECONDS)
                continue
            tried = ledger
            if self._write(actions):
                break
        with self._clean_up():
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
                (commit,) = self._get((f"commits {item['epoch']}", _padded(group[0].version)))
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
        update = self._update(("tables", table), {"version": commits[-1].version}, same)
        return [update, *(self._commit_item(known["epoch"], one, moment, call) for one in commits)]

    def _used_token(self, token: str, used: Item | None, moment: int, call: str) -> Item:
        now = _now_ms()
        if used is not None and used["time_ms"] >= now - _KEPT_TOKENS_MS:
            what = f"What the token {token} stands for was done already; nothing was done again."
            raise TokenUsedError(what, moment=used["moment"])
        values = {"moment": moment, "time_ms": now, "call": call, "expireTime": (now + _KEPT_TOKENS_MS) // 1000}
        return self._put(_token_key(token), values, same={} if used is None else {"call": used["call"]})

    def turn(self, tables: Iterable[str]) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # an item that one of them holds would have to be polled, and to be taken from the dead

    def acknowledge(self, table: str, version: int) -> None:
        for _ in self._tries():
            (known,) = self._get(("tables", table))
            if known is None or not known["published"] < version <= known["version"]:
                return
            same = {"published": known["published"], "epoch": known["epoch"]}
            if self._write([self._update(("tables", table), {"published": version}, same)]):
                break
        if known is not None and version > _KEPT_VERSIONS:
            below = ("", _padded(version - _KEPT_VERSIONS - 1))
            with self._clean_up():
                old = self._query(f"commits {known['epoch']}", between=below, limit=_TRIMMED_AT_ONCE)
                self._remove(itertools.islice(old, _TRIMMED_AT_ONCE))

    # ------------------------------------------------------------ moments

    def moment(self, time_ms: int | None = None) -> int | None:
        if time_ms is None:
            return int(self._ledger()["moment"])
        found = next(self._query("moments", between=("", f"{_padded(time_ms)}~"), newest_first=True, limit=1), None)
        return None if found is None else int(found["moment"])

    def version_at(self, table: str, moment: int) -> int | None:
        if _is_too_long(table):
            return None
        for _ in self._tries():
            (known,) = self._get(("tables", table))
            if known is None:
                return None
            version, is_known_still = self._version_of(known, table, moment)
            if is_known_still:
                return version
        raise AssertionError("unreachable")

    def _version_of(self, known: Item, table: str, moment: int) -> tuple[int | None, bool]:
        """As version_at has it, and whether that is so: not where the table was forgotten while it was looked for."""
        oldest = None
        for item in self._query(f"commits {known['epoch']}", newest_first=True, limit=_FIRST_LOOKED_AT):
            oldest = int(item[_RANGE])
            if item["moment"] <= moment:
                return oldest, True
        (again,) = self._get(("tables", table))
        is_told = known["first_moment"] <= moment and oldest in (None, known["first_version"] + 1)
        return (int(known["first_version"]) if is_told else None), again is not None and again["epoch"] == known["epoch"]

    def _trim_moments(self, moment: int) -> None:
        if moment > _KEPT_MOMENTS and moment % _TRIMMED_AT_ONCE == 0:
            old = itertools.islice(self._query("moments", limit=2 * _TRIMMED_AT_ONCE), 2 * _TRIMMED_AT_ONCE)
            self._remove(item for item in old if item["moment"] < moment - _KEPT_MOMENTS)

    # ------------------------------------------------------------ transactions over tables

    def begin(self, seconds: float) -> Begun:
        now = _now_ms()
        for item in self._query("open", between=("", f"{_padded(now - 1)}~")):
            self._give_up(item, now)
        identity, ends_ms = str(uuid.uuid4()), now + round(seconds * 1000)
        moment = int(self._ledger()["moment"])
        values = {"moment": moment, "state": _OPEN, "ends_ms": ends_ms}
        listed = self._put(_listed_key(ends_ms, identity), {"transaction": identity})
        for _ in self._tries():
            if self._write([self._put(_transaction_key(identity), values), listed]):
                break
            if self._get(_transaction_key(identity))[0] is not None:
                break
        return Begun(identity, moment)

    def _give_up(self, listed: Item, now: int) -> None:
        """Take away what is left of a transaction whose time is over. Of one that was committed that it was stays for as long as
        it is to be known, and it is listed for then."""
        transaction = listed["transaction"]
        key = _transaction_key(transaction)
        (item,) = self._get(key)
        if item is not None and item["state"] == _COMMITTED and item["ends_ms"] >= now - KEPT_COMMITTED_MS:
            later = _listed_key(item["ends_ms"] + KEPT_COMMITTED_MS, transaction)
            self._put_alone(_keyed(later) | {"transaction": transaction})
        elif item is not None and not self._write([self._delete(key, {"state": item["state"]})]):
            return  # it has ended meanwhile: the next one sees to it
        self._drop_proposals(transaction)  # behind the transaction, so that none has only a part of its proposals
        self._delete_alone((listed[_HASH], listed[_RANGE]))  # last, so that the next one finishes it where this one dies

    def find(self, transaction: str) -> Begun:
        (item,) = self._get(_transaction_key(transaction))
        return Begun(transaction, _check_open(transaction, item))

    def propose(self, transaction: str, proposed: Proposed) -> None:
        commit, described, call = proposed.commit, proposed.described, str(uuid.uuid4())
        key = (_transaction_key(transaction)[0], f"proposal {commit.table} {_padded(commit.version)}")
        self._check_length("place of a table", commit.table, _LONGEST_RANGE_BYTES)
        parts = self._put_parts(transaction, call, described)
        values = _values(commit) | {"place": commit.table, "call": call, "parts": parts}
        if not self._put_in(transaction, key, values):
            raise taken(commit.table, commit.version, commit.version)

    def _put_parts(self, transaction: str, call: str, data: bytes) -> int:
        """How many there are. They are found once an item is there that has this call."""
        key = _transaction_key(transaction)
        (begun,) = self._get(key)
        _check_open(transaction, begun)
        assert begun is not None
        expires = (begun["ends_ms"] + _KEPT_TOKENS_MS) // 1000  # for those that are put behind the transaction's end
        pieces = [data[begin : begin + _PART_BYTES] for begin in range(0, len(data), _PART_BYTES)]
        for number, piece in enumerate(pieces):
            self._put_alone({_HASH: key[0], _RANGE: f"part {call} {_padded(number)}", "bytes": piece, "expireTime": expires})
        return len(pieces)

    def _put_in(self, transaction: str, key: Key, values: Item) -> bool:
        """An item of a transaction that is under way; False where another one of that key is there."""
        for _ in self._tries():
            present, begun = self._get(key, _transaction_key(transaction))
            if present is not None and present["call"] == values["call"]:
                return True
            _check_open(transaction, begun)
            if present is not None:
                return False
            if self._write([self._check(_transaction_key(transaction), {"state": _OPEN}), self._put(key, values)]):
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
        for item, reads in self._of_open(transaction, lambda: list(self._query(part, begins="reads "))):
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
            parts = list(self._query(_transaction_key(transaction)[0], begins=f"part {item['call']} "))
            if len(parts) == item["parts"]:
                whole.append((item, b"".join(part["bytes"] for part in parts)))
        return whole

    def _headers(self, transaction: str, table: str | None) -> list[Item]:
        items = self._query(_transaction_key(transaction)[0], begins="proposal " if table is None else f"proposal {table} ")
        return [item for item in items if table in (None, item["place"])]

    def state_of(self, transaction: str) -> str | None:
        (item,) = self._get(_transaction_key(transaction))
        return None if item is None else str(item["state"])

    def abort(self, transaction: str) -> list[Proposed]:
        call = str(uuid.uuid4())
        for _ in self._tries():
            (item,) = self._get(_transaction_key(transaction))
            if item is not None and item.get("call") == call:
                break
            if item is None or item["state"] != _OPEN:
                return []
            if self._write([self._update(_transaction_key(transaction), {"state": _ABORTED, "call": call}, {"state": _OPEN})]):
                break
        found = self._whole(transaction, self._headers(transaction, None))
        with self._clean_up():
            self._drop_proposals(transaction)
        return _as_proposed(found)

    def _drop_proposals(self, transaction: str) -> None:
        for begins in ("proposal ", "reads ", "part "):
            self._remove(self._query(_transaction_key(transaction)[0], begins=begins))

    def moment_of(self, token: str) -> int | None:
        self._check_length("token", token, _LONGEST_HASH_BYTES)
        (item,) = self._get(_token_key(token))
        return None if item is None else int(item["moment"])

    # ------------------------------------------------------------ requests

    def _tries(self, *, looks_again: bool = False) -> Iterator[int]:
        """Numbers of tries, with waits between them. Raises CoordinatorUnavailableError when time is over. looks_again: before
        that there is _LOOK, in which nothing is to be written."""
        begin = time.monotonic()
        for number in itertools.count():
            yield number
            if time.monotonic() - begin > _CONTENTION_SECONDS:
                if looks_again:
                    yield _LOOK
                raise unavailable(self.shown, f"others changed the same items for {_CONTENTION_SECONDS:.0f} s")
            time.sleep(random.uniform(0, min(_LONGEST_WAIT_SECONDS, 0.005 * 2 ** min(number, 10))))

    @contextlib.contextmanager
    def _clean_up(self) -> Iterator[None]:
        """What goes behind a step that is done: a failure is logged, and no more."""
        try:
            yield
        except CoordinatorUnavailableError as error:
            _log.warning("%s: what is not needed any more is still there: %s", self.shown, error)

    def _run(self, call: Callable[[Any], Any]) -> Any:
        """One request that may be repeated. Raises CoordinatorUnavailableError, TransactionCancelled."""
        where = f"the DynamoDB table {self._name}"
        try:
            if self._made is None or self._made[0] != os.getpid():  # a process that was forked shares sockets with its parent
                self._made = (os.getpid(), aws_client("dynamodb", self._access))
            client = self._made[1]
            setting = "retry_timeout in the coordinator's URL"
            return until_answered(
                f"ask {where}",
                lambda: ask(where, self._access, lambda: call(client)),
                seconds=self._retry_seconds,
                setting=setting,
            )
        except (StorageError, OSError) as error:
            raise unavailable(self.shown, self._access.hide(str(error))) from error

    def _get(self, *keys: Key) -> list[Item | None]:
        """One state of all of them."""
        if len(keys) == 1:
            asked = {"TableName": self._name, "Key": _typed_key(keys[0]), "ConsistentRead": True}
            answers = [self._run(lambda client: client.get_item(**asked))]
        else:
            self._check_count(len(keys))
            gets = [{"Get": {"TableName": self._name, "Key": _typed_key(key)}} for key in keys]
            answers = self._got(gets)
        return [_plain(answer["Item"]) if answer.get("Item") else None for answer in answers]

    def _got(self, gets: list[Item]) -> list[Item]:
        for _ in self._tries():
            try:
                found: list[Item] = self._run(lambda client: client.transact_get_items(TransactItems=gets))["Responses"]
                return found
            except TransactionCancelled as error:
                self._check_reasons(error)
        raise AssertionError("unreachable")

    def _query(
        self,
        part: str,
        *,
        between: tuple[str, str] | None = None,
        begins: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Item]:
        """Items in the order of their range keys. limit: how many the first request takes; later ones take more."""
        condition, values = f"{_HASH} = :part", {":part": {"S": part}}
        if between is not None:
            condition += f" AND {_RANGE} BETWEEN :low AND :high"
            values |= {":low": {"S": between[0] or " "}, ":high": {"S": between[1]}}
        if begins is not None:
            condition, values = f"{condition} AND begins_with({_RANGE}, :begins)", values | {":begins": {"S": begins}}
        asked: Item = {
            "TableName": self._name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ConsistentRead": True,
            "ScanIndexForward": not newest_first,
            **({} if limit is None else {"Limit": limit}),
        }
        while True:
            answer = self._run(lambda client: client.query(**asked))
            yield from (_plain(item) for item in answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            if limit is not None:
                asked["Limit"] *= 4

    def _remove(self, items: Iterable[Item]) -> None:
        for item in list(items):
            self._delete_alone((item[_HASH], item[_RANGE]))

    def _delete_alone(self, key: Key) -> None:
        self._run(lambda client: client.delete_item(TableName=self._name, Key=_typed_key(key)))

    def _put_alone(self, item: Item) -> None:
        self._run(lambda client: client.put_item(TableName=self._name, Item=_typed(item)))

    def _write(self, actions: list[Item]) -> bool:
        """All of them, or False where a condition did not hold, or others were at the same items. Repeated until it is answered,
        with one token: so it is done once."""
        self._check_count(len(actions))
        token = str(uuid.uuid4())
        try:
            self._run(lambda client: client.transact_write_items(TransactItems=actions, ClientRequestToken=token))
        except TransactionCancelled as error:
            self._check_reasons(error)
            return False
        return True

    def _check_reasons(self, error: TransactionCancelled) -> None:
        if not set(error.reasons) <= _WORTH_ANOTHER_TRY:
            raise unavailable(self.shown, error) from error

    def _check_count(self, count: int) -> None:
        if count > _MOST_ITEMS:
            raise UnsupportedOperationError(
                f"The coordinator {self.shown} cannot decide {count} items at once: DynamoDB takes {_MOST_ITEMS} at once, "
                "and each table and each commit is one or two. Nothing was done. Give fewer tables and commits at once, or use a "
                "coordinator in PostgreSQL.",
                items=count,
            )

    def _check_length(self, what: str, text: str, most: int) -> None:
        if (length := len(text.encode())) > most:
            raise UnsupportedOperationError(
                f"The coordinator {self.shown} cannot have the {what} {shown(text[:100])}..., which has {length} bytes: in "
                f"DynamoDB it may have {most}. Nothing was done. Use a shorter one, or a coordinator in PostgreSQL.",
                bytes=length,
            )

    # ------------------------------------------------------------ items

    def _ledger(self) -> Item:
        return self._present(self._get(_LEDGER)[0])

    def _present(self, ledger: Item | None) -> Item:
        if ledger is None:
            raise unavailable(self.shown, "the item that says which ledger it is was deleted")
        return ledger

    def _step(self, ledger: Item, changes: Item) -> Item:
        return self._update(_LEDGER, changes, {name: ledger[name] for name in _STEPS})

    def _has_moved(self, before: Item, ledger: Item) -> bool:
        """Whether a step that was to follow the ledger's item before can not be carried out any more, even if it arrives late."""
        return any(before[name] != ledger[name] for name in _STEPS)

    def _moment_item(self, moment: int, now: int) -> Item:
        return self._put(("moments", f"{_padded(now)} {_padded(moment)}"), {"moment": moment})

    def _commit_item(self, epoch: str, commit: Ratified, moment: int, call: str) -> Item:
        return self._put((f"commits {epoch}", _padded(commit.version)), _values(commit) | {"moment": moment, "call": call})

    def _put(self, key: Key, values: Item, same: Item | None = None) -> Item:
        """same: what an item of that key must be that is replaced; None or nothing: there must be none."""
        item = {"TableName": self._name, "Item": _typed(_keyed(key) | values)}
        if same:
            return {"Put": item | _conditions(same)}
        return {"Put": item | {"ConditionExpression": f"attribute_not_exists({_HASH})"}}

    def _update(self, key: Key, changes: Item, same: Item) -> Item:
        conditions = _conditions(same)
        names = {f"#u{number}": name for number, name in enumerate(changes)}
        values = {f":u{number}": value for number, value in enumerate(changes.values())}
        text = ", ".join(f"#u{number} = :u{number}" for number in range(len(changes)))
        conditions["ExpressionAttributeNames"] |= names
        conditions["ExpressionAttributeValues"] |= _typed(values)
        return {"Update": {"TableName": self._name, "Key": _typed_key(key), "UpdateExpression": f"SET {text}", **conditions}}

    def _check(self, key: Key, same: Item) -> Item:
        return {"ConditionCheck": {"TableName": self._name, "Key": _typed_key(key), **_conditions(same)}}

    def _delete(self, key: Key, same: Item) -> Item:
        return {"Delete": {"TableName": self._name, "Key": _typed_key(key), **(_conditions(same) if same else {})}}


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


def _conditions(same: Item) -> Item:
    return {
        "ConditionExpression": " AND ".join(f"#c{number} = :c{number}" for number in range(len(same))),
        "ExpressionAttributeNames": {f"#c{number}": name for number, name in enumerate(same)},
        "ExpressionAttributeValues": _typed({f":c{number}": value for number, value in enumerate(same.values())}),
    }


def _typed(values: Item) -> Item:
    return {name: _typed_value(value) for name, value in values.items()}


def _typed_value(value: Any) -> Item:
    if isinstance(value, bytes):
        return {"B": value}
    return {"N": str(value)} if isinstance(value, int) else {"S": value}


def _typed_key(key: Key) -> Item:
    return _typed(_keyed(key))


def _keyed(key: Key) -> Item:
    return {_HASH: key[0], _RANGE: key[1]}


def _plain(item: Item) -> Item:
    return {name: int(value["N"]) if "N" in value else value.get("S", value.get("B")) for name, value in item.items()}


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


def _without_user(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else endpoint


def _number(name: str, text: str | None, default: float) -> float:
    try:
        number = default if text is None else float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        what = f"The URL of a coordinator in DynamoDB has {name}={text!r}"
        raise InvalidOptionError(f"{what}, which is no number of seconds above 0. Correct it.", option="coordinator")
    return number
