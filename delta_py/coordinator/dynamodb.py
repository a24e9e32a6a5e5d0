"""Requests to one table of DynamoDB: written all or none, read as it is now, and asked again until they are answered.

    database = DynamoDb("ledger", AwsAccess(), region="eu-west-1", endpoint=None, shown="dynamodb://ledger")
    database.get(("a", "b"))                                        # {"version": 7}; None where there is no item of that key
    database.write([update(("a", "b"), {"version": 8}, [("version", "=", 7)])])        # False where it is not 7 any more

An item has a key of two texts, `pk` and `sk`, and values that are texts, integers or bytes.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from delta_py.coordinator.ledger import unavailable
from delta_py.errors import DeltaError, UnsupportedOperationError

Key: TypeAlias = tuple[str, str]
Item: TypeAlias = dict[str, Any]
Condition: TypeAlias = tuple[str, str, str | int | None]
"""Of an attribute: its name, `=`, `<`, `<=` or `>=`, and a value; `=` None where the item must not have it."""
Step: TypeAlias = dict[str, dict[str, Any]]

MOST_STEPS = 100  # of TransactWriteItems
MOST_ITEM_BYTES = 350_000  # of the one value of an item that is long; an item has 400 KB
_PAGE = 25  # of BatchWriteItem
_TRY_SECONDS = 60.0
_UNREACHABLE_SECONDS = 10.0  # nothing is at a mistyped address, and nothing will be
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.01, 1.0
_MADE_SECONDS = 120  # for a new table
_ABSENT: Condition = ("pk", "=", None)


def put(key: Key, values: Mapping[str, str | int | bytes]) -> Step:
    """A new item; there must be none of its key."""
    return {"Put": {"Item": _encoded({"pk": key[0], "sk": key[1], **values}), **_expressions({}, {}, [_ABSENT])}}


def update(key: Key, values: Mapping[str, str | int], where: Sequence[Condition], add: Mapping[str, int] | None = None) -> Step:
    """add: numbers to add to attributes."""
    return {"Update": {"Key": _key(key), **_expressions(values, add or {}, where)}}


def check(key: Key, where: Sequence[Condition]) -> Step:
    return {"ConditionCheck": {"Key": _key(key), **_expressions({}, {}, where)}}


def delete(key: Key, where: Sequence[Condition]) -> Step:
    return {"Delete": {"Key": _key(key), **_expressions({}, {}, where)}}


class _NotAnswered(Exception):
    """Nobody knows whether it was done."""

    def __init__(self, why: str, is_unreachable: bool) -> None:
        super().__init__(why)
        self.is_unreachable = is_unreachable


class _Busy(Exception):
    """It was not done, and may be later."""


class _Refused(Exception):
    """It was not done: a condition does not hold."""


class _Occupied(Exception):
    """It was not done: another transaction has one of its items."""


class Patience:
    """How often something is tried: for a time, with waits that grow, of random lengths."""

    def __init__(self, shown: str) -> None:
        self._shown, self._begin, self._count = shown, time.monotonic(), 0

    def wait(self, why: object, *, is_unreachable: bool = False) -> None:
        """Raises CoordinatorUnavailableError when the time is over."""
        longest = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2 ** min(self._count, 20))
        seconds, self._count = random.uniform(0, longest), self._count + 1
        budget = _UNREACHABLE_SECONDS if is_unreachable else _TRY_SECONDS
        if time.monotonic() + seconds - self._begin > budget:
            raise unavailable(self._shown, f"{why}, tried again for {time.monotonic() - self._begin:.0f} s")
        time.sleep(seconds)


class DynamoDb:
    """shown: the ledger, for messages. Every method raises CoordinatorUnavailableError. Raises UnsupportedOperationError where
    boto3 is not installed."""

    def __init__(self, table: str, access: Any, *, region: str | None, endpoint: str | None, shown: str) -> None:
        self._table, self._access, self._region, self._endpoint, self.shown = table, access, region, endpoint, shown
        self._clients: dict[int, Any] = {}  # by process: one that was forked must not use its parent's sockets

    def patience(self) -> Patience:
        return Patience(self.shown)

    # ------------------------------------------------------------ the table

    def make(self) -> None:
        """Make the table where it is missing; items are deleted some time after `expires` (seconds since 1970). Raises
        UnsupportedOperationError for a table that has other keys."""
        described = self._described()
        if described is None:
            self._create()
            described = self._wait_until_made()
        keys = {key["KeyType"]: key["AttributeName"] for key in described["KeySchema"]}
        if keys != {"HASH": "pk", "RANGE": "sk"}:
            raise UnsupportedOperationError(
                f"The DynamoDB table {self._table} cannot be a ledger ({self.shown}): its keys are {keys}, and not pk and sk. "
                "Nothing was written. Name another table; it is made where there is none.",
                table=self._table,
            )
        if described["TableStatus"] == "CREATING":  # by another process
            self._wait_until_made()

    def _described(self) -> Any:
        patience = self.patience()
        while True:
            try:
                return self._once("describe_table", TableName=self._table)["Table"]
            except _Missing:
                return None
            except (_NotAnswered, _Busy) as error:
                patience.wait(error, is_unreachable=isinstance(error, _NotAnswered) and error.is_unreachable)

    def _create(self) -> None:
        names = [("pk", "HASH"), ("sk", "RANGE")]
        settings = {
            "TableName": self._table,
            "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in names],
            "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name, _ in names],
            "BillingMode": "PAY_PER_REQUEST",
        }
        try:
            self._once("create_table", **settings)
        except (_Occupied, _NotAnswered, _Busy):
            return  # another process makes it, or `_wait_until_made` finds out
        self._wait_until_made()
        lifetime = {"Enabled": True, "AttributeName": "expires"}
        self._ask("update_time_to_live", TableName=self._table, TimeToLiveSpecification=lifetime)

    def _wait_until_made(self) -> Any:
        for _ in range(_MADE_SECONDS * 2):
            described = self._described()
            if described is not None and described["TableStatus"] not in ("CREATING", "DELETING"):
                return described
            time.sleep(0.5)
        raise unavailable(self.shown, f"the table {self._table} was not made in {_MADE_SECONDS} s")

    # ------------------------------------------------------------ items

    def get(self, key: Key) -> Item | None:
        answer = self._ask("get_item", TableName=self._table, Key=_key(key), ConsistentRead=True)
        return _decoded(answer["Item"]) if answer.get("Item") else None

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        """In the order of the keys, up to 100. Each as it is now, but not all at one time."""
        found: dict[Key, Item] = {}
        missing = [_key(key) for key in dict.fromkeys(keys)]
        patience = self.patience()
        while missing:
            requested = {self._table: {"Keys": missing, "ConsistentRead": True}}
            answer = self._ask("batch_get_item", RequestItems=requested)
            for item in map(_decoded, answer["Responses"].get(self._table, [])):
                found[item["pk"], item["sk"]] = item
            missing = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            if missing:
                patience.wait("it answers only for some items")
        return [found.get(key) for key in keys]

    def query(
        self, pk: str, *, start: str = " ", end: str = "~", is_descending: bool = False, page: int | None = None
    ) -> Iterator[Item]:
        """The items of `pk` whose sk lies between, by sk. page: how many are read at once."""
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :start AND :end",
            "ExpressionAttributeValues": _encoded({":pk": pk, ":start": start, ":end": end}),
            "ConsistentRead": True,
            "ScanIndexForward": not is_descending,
            **({} if page is None else {"Limit": page}),
        }
        while True:
            answer = self._ask("query", **request)
            yield from map(_decoded, answer["Items"])
            if not answer.get("LastEvaluatedKey"):
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def write(self, steps: Sequence[Step], *, mark: Key | None = None, patience: Patience | None = None) -> bool:
        """All steps or none; False where none was done, as a condition does not hold or others write the same items: then it is
        to be looked at anew. mark: one of the items that are put or updated, by which a write whose answer was lost is known
        again when its conditions do not hold any more. Raises UnsupportedOperationError for more steps than DynamoDB takes."""
        if len(steps) > MOST_STEPS:
            raise UnsupportedOperationError(
                f"The coordinator {self.shown} writes at most {MOST_STEPS} items at once, and this needs {len(steps)}: two of "
                "each table that is written, one of each that was only read. Nothing was committed. Use fewer tables at once.",
                steps=len(steps),
            )
        token, patience, is_unsure = str(uuid.uuid4()), patience or self.patience(), False
        for step in steps if mark is not None else ():
            _add_mark(step, mark, token)
        while True:
            try:
                # A server that has done it already, by the same token, says so again.
                self._once("transact_write_items", TransactItems=self._named(steps), ClientRequestToken=token)
                return True
            except _Refused:
                return is_unsure and mark is not None and (self.get(mark) or {}).get("by") == token
            except _Occupied as error:
                patience.wait(error)
                if not is_unsure:
                    return False
            except _Busy as error:
                patience.wait(error)
            except _NotAnswered as error:
                is_unsure = True
                patience.wait(error, is_unreachable=error.is_unreachable)

    def put_part(self, key: Key, values: Mapping[str, str | int | bytes]) -> None:
        """An item of a key that nobody else writes."""
        self._ask("put_item", TableName=self._table, Item=_encoded({"pk": key[0], "sk": key[1], **values}))

    def remove(self, keys: Sequence[Key]) -> None:
        """Not all at one time; those that are missing are passed by."""
        patience = self.patience()
        for start in range(0, len(keys), _PAGE):
            waiting = [{"DeleteRequest": {"Key": _key(key)}} for key in keys[start : start + _PAGE]]
            while waiting:
                answer = self._ask("batch_write_item", RequestItems={self._table: waiting})
                waiting = answer.get("UnprocessedItems", {}).get(self._table, [])
                if waiting:
                    patience.wait("it deletes only some items")

    def _named(self, steps: Sequence[Step]) -> list[Step]:
        return [{kind: {"TableName": self._table, **what} for kind, what in step.items()} for step in steps]

    # ------------------------------------------------------------ requests

    def _ask(self, method: str, **request: Any) -> Any:
        """Of a request that may be carried out twice."""
        patience = self.patience()
        while True:
            try:
                return self._once(method, **request)
            except (_Busy, _Occupied) as error:
                patience.wait(error)
            except _NotAnswered as error:
                patience.wait(error, is_unreachable=error.is_unreachable)
            except _Missing as error:
                raise unavailable(self.shown, f"{error}. The table was deleted since it was opened") from error

    def _once(self, method: str, **request: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError, HTTPClientError

        try:
            return getattr(self._client(), method)(**request)
        except ClientError as error:
            raise self._meaning(error) from error
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            raise _NotAnswered(self._hide(error), is_unreachable=True) from error
        except HTTPClientError as error:
            raise _NotAnswered(self._hide(error), is_unreachable=False) from error
        except (BotoCoreError, ValueError) as error:  # ValueError: an endpoint that is no URL
            raise unavailable(self.shown, self._hide(error)) from error

    def _meaning(self, error: Any) -> Exception:
        from delta_py.aws_clients import BUSY, CURES

        code, said = str(error.response.get("Error", {}).get("Code", "")), self._hide(error)
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code == "TransactionCanceledException":
            reasons = {reason.get("Code") for reason in error.response.get("CancellationReasons", ())}
            return self._cancelled(reasons - {"None", None}, said)
        if code == "ConditionalCheckFailedException":
            return _Refused(said)
        if code in ("TransactionConflictException", "ResourceInUseException"):
            return _Occupied(said)
        if code in BUSY:
            return _Busy(said)
        if code == "ResourceNotFoundException":
            return _Missing(said)
        if code == "TransactionInProgressException" or status >= 500 or not status >= 400:
            return _NotAnswered(said, is_unreachable=False)
        return unavailable(self.shown, f"{said}. {CURES.get(code, '')}".rstrip(". "))

    def _cancelled(self, reasons: set[Any], said: str) -> Exception:
        if "ConditionalCheckFailed" in reasons:
            return _Refused(said)
        if "TransactionConflict" in reasons:
            return _Occupied(said)
        if reasons <= {"ThrottlingError", "ProvisionedThroughputExceeded"}:
            return _Busy(said)
        return unavailable(self.shown, said)

    def _hide(self, error: Exception) -> str:
        text = str(error)
        for secret in (self._access.secret_access_key, self._access.session_token):
            text = text.replace(secret, "...") if secret else text
        return text

    def _client(self) -> Any:
        process = os.getpid()
        if process not in self._clients:
            from delta_py.aws_clients import make_client

            self._clients[process] = make_client("dynamodb", self._access, endpoint=self._endpoint, region=self._region)
        return self._clients[process]


class _Missing(Exception):
    """There is no such table."""


def not_written(shown: str, what: str, size_bytes: int) -> DeltaError:
    return UnsupportedOperationError(
        f"The coordinator {shown} keeps at most {MOST_ITEM_BYTES} bytes of {what}, and these are {size_bytes}. Nothing was "
        "committed. Commit less at once.",
        size_bytes=size_bytes,
    )


# ---------------------------------------------------------------- items as DynamoDB writes them


def _key(key: Key) -> dict[str, Any]:
    return _encoded({"pk": key[0], "sk": key[1]})


def _encoded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in values.items()}


def _value(value: str | int | bytes) -> dict[str, Any]:
    match value:
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case bytes():
            return {"B": value}


def _decoded(item: Mapping[str, Any]) -> Item:
    return {name: int(value["N"]) if "N" in value else next(iter(value.values())) for name, value in item.items()}


def _expressions(values: Mapping[str, Any], add: Mapping[str, int], where: Sequence[Condition]) -> dict[str, Any]:
    """Names and values stand beside the expressions: many names are words of DynamoDB's own."""
    names: dict[str, str] = {}
    given: dict[str, Any] = {}

    def name(text: str) -> str:
        names[f"#{text}"] = text
        return f"#{text}"

    def value(one: Any) -> str:
        given[f":v{len(given)}"] = _value(one)
        return f":v{len(given) - 1}"

    parts: dict[str, Any] = {}
    changes = []
    if values:
        changes.append("SET " + ", ".join(f"{name(attribute)} = {value(one)}" for attribute, one in values.items()))
    if add:
        changes.append("ADD " + ", ".join(f"{name(attribute)} {value(one)}" for attribute, one in add.items()))
    if changes:
        parts["UpdateExpression"] = " ".join(changes)
    conditions = [
        f"attribute_not_exists({name(attribute)})" if one is None else f"{name(attribute)} {comparison} {value(one)}"
        for attribute, comparison, one in where
    ]
    if conditions:
        parts["ConditionExpression"] = " AND ".join(conditions)
    parts["ExpressionAttributeNames"] = names
    return parts | ({"ExpressionAttributeValues": given} if given else {})


def _add_mark(step: Step, mark: Key, token: str) -> None:
    """Where the step puts or updates the item, it says who did."""
    ((kind, what),) = step.items()
    if kind == "Put" and (what["Item"]["pk"]["S"], what["Item"]["sk"]["S"]) == mark:
        what["Item"]["by"] = {"S": token}
    if kind == "Update" and what["Key"] == _key(mark):
        what["ExpressionAttributeNames"]["#by"] = "by"
        what.setdefault("ExpressionAttributeValues", {})[":by"] = {"S": token}
        what["UpdateExpression"] = what["UpdateExpression"].replace("SET ", "SET #by = :by, ", 1)
