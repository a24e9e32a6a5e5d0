"""Items of a DynamoDB table: read as one consistent state, and written together on conditions.

    items = DynamoDbItems("dynamodb://TABLE?region=eu-west-1")
    items.write([items.put_action(("kind", "name"), {"size": 3}), items.check_action(("kind", "other"), {"state": "open"})])   #
    all, or False

The table has the keys `tablePath` (hash) and `fileName` (range), both text. Values are texts, integers and bytes. An action of
`put_action`, `update_action`, `check_action` or `delete_action` succeeds only if the item has the expected attributes.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from delta_py.aws_clients import TIMEOUT_SECONDS, AwsAccess, TransactionCancelled, aws_client, call_aws
from delta_py.backoff import Backoff
from delta_py.coordinator.ledger import CoordinatorUnavailableError, unavailable_error
from delta_py.errors import InvalidOptionError, StorageError, UnsupportedOperationError, shown
from delta_py.remote_requests import RETRY_SECONDS, until_answered

_log = logging.getLogger("delta_py")

HASH, RANGE = "tablePath", "fileName"
# The parameters of a URL: texts, numbers of seconds with their defaults, and those that messages show.
_TEXT_PARAMETERS = ("region", "endpoint", "access_key_id", "secret_access_key", "session_token", "profile")
_SECONDS_PARAMETERS = {"request_timeout": TIMEOUT_SECONDS, "retry_timeout": RETRY_SECONDS}
_ENDPOINT_CURE = "Check the endpoint in the coordinator's URL, and the network."
_NO_CREDENTIALS = "Set up boto3's usual credentials, or have access_key_id and secret_access_key in the coordinator's URL."
_SHOWN_PARAMETERS = ("region", "endpoint")
_MOST_ITEMS = 100  # the limit of one transaction in DynamoDB
CONTENTION_SECONDS = 60.0  # how long a call tries again while others change the same items
# Waits between the attempts of one call.
_BACKOFF = Backoff(first_seconds=0.005, longest_seconds=1.0)
# Why DynamoDB cancels a transaction that may succeed later. "None" is the code of an item that is not the cause.
_WORTH_ANOTHER_TRY = {"None", "ConditionalCheckFailed", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}

Key = tuple[str, str]
Item = dict[str, Any]
READ_ONLY_ATTEMPT = -1
"""The number of an attempt that only reads whether the previous attempt succeeded."""


class DynamoDbItems:
    """The items of one DynamoDB table. Raises InvalidOptionError for an invalid URL. shown: the URL for messages, without
    secrets.

    Methods raise CoordinatorUnavailableError if DynamoDB does not answer, or refuses for another reason than a condition.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
        unknown = sorted(set(parameters) - {*_TEXT_PARAMETERS, *_SECONDS_PARAMETERS})
        if not parts.netloc or "@" in parts.netloc or parts.path.strip("/") or unknown:
            what = f"it has {', '.join(unknown)}" if unknown else "it names no table, or more than a table"
            raise InvalidOptionError(
                f"The URL of a coordinator in DynamoDB cannot be used: {what}. Write dynamodb://TABLE, with any of "
                f"{', '.join((*_TEXT_PARAMETERS, *_SECONDS_PARAMETERS))} after a question mark.",
                option="coordinator",
            )
        self._name = parts.netloc
        seconds = {name: _parse_seconds(name, parameters.get(name), default) for name, default in _SECONDS_PARAMETERS.items()}
        access = AwsAccess(_NO_CREDENTIALS, _ENDPOINT_CURE, timeout_seconds=seconds["request_timeout"])
        self._access = replace(access, **{name: parameters[name] for name in _TEXT_PARAMETERS if name in parameters})  # type: ignore[arg-type]
        self._retry_seconds = seconds["retry_timeout"]
        shown_parameters = "&".join(
            f"{name}={_without_user(parameters[name])}" for name in _SHOWN_PARAMETERS if name in parameters
        )
        self.shown = f"dynamodb://{self._name}{'?' if shown_parameters else ''}{shown_parameters}"
        self._client_of_process: tuple[int, Any] | None = None

    # ------------------------------------------------------------ requests

    def tries(self, *, has_last_look: bool = False) -> Iterator[int]:
        """Yield the number of each attempt, from 0 on, and wait between them. Raises CoordinatorUnavailableError after
        CONTENTION_SECONDS. has_last_look: yield READ_ONLY_ATTEMPT before that, for a last attempt in which the caller only reads
        whether an earlier one has succeeded."""
        begin = time.monotonic()
        for number in itertools.count():
            yield number
            if time.monotonic() - begin > CONTENTION_SECONDS:
                if has_last_look:
                    yield READ_ONLY_ATTEMPT
                raise unavailable_error(self.shown, f"others changed the same items for {CONTENTION_SECONDS:.0f} s")
            time.sleep(_BACKOFF.wait_seconds(number))

    @contextlib.contextmanager
    def clean_up(self) -> Iterator[None]:
        """For cleanup after a step that has succeeded: a failure is only logged."""
        try:
            yield
        except CoordinatorUnavailableError as error:
            _log.warning("%s: items that are not needed any more could not be deleted: %s", self.shown, error)

    def _run(self, call: Callable[[Any], Any]) -> Any:
        """Send a request that may be repeated, and return its answer. call: sends it through a client of boto3. Raises
        CoordinatorUnavailableError, TransactionCancelled."""
        where = f"the DynamoDB table {self._name}"
        try:
            # A forked process would share sockets with its parent, so it makes its own client.
            if self._client_of_process is None or self._client_of_process[0] != os.getpid():
                self._client_of_process = (os.getpid(), aws_client("dynamodb", self._access))
            client = self._client_of_process[1]
            setting = "retry_timeout in the coordinator's URL"
            return until_answered(
                f"ask {where}",
                lambda: call_aws(where, self._access, lambda: call(client)),
                seconds=self._retry_seconds,
                setting=setting,
            )
        except (StorageError, OSError) as error:
            raise unavailable_error(self.shown, self._access.hide(str(error))) from error

    def get(self, *keys: Key) -> list[Item | None]:
        """The items with these keys, read in one consistent state; None for each that does not exist."""
        if len(keys) == 1:
            request = {"TableName": self._name, "Key": _typed_key(keys[0]), "ConsistentRead": True}
            answers = [self._run(lambda client: client.get_item(**request))]
        else:
            self._check_count(len(keys))
            gets = [{"Get": {"TableName": self._name, "Key": _typed_key(key)}} for key in keys]
            answers = self._get_in_transaction(gets)
        return [_untyped(answer["Item"]) if answer.get("Item") else None for answer in answers]

    def _get_in_transaction(self, gets: list[Item]) -> list[Item]:
        """Read several items in one transaction. It is repeated while others write the same items."""
        for _ in self.tries():
            try:
                responses: list[Item] = self._run(lambda client: client.transact_get_items(TransactItems=gets))["Responses"]
                return responses
            except TransactionCancelled as error:
                self._check_reasons(error)
        raise AssertionError("unreachable")

    def query(
        self,
        part: str,
        *,
        between: tuple[str, str] | None = None,
        begins: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Item]:
        """Items in the order of their range keys. part: their hash key. between: the lowest and the highest range key, both
        included; an empty text stands for the lowest of all. begins: the beginning of the range keys. limit: how many items the
        first request reads; later requests read more.
        """
        condition, values = f"{HASH} = :part", {":part": {"S": part}}
        if between is not None:
            condition += f" AND {RANGE} BETWEEN :low AND :high"
            # DynamoDB accepts no empty text in a key; a blank comes before all texts that are used here.
            values |= {":low": {"S": between[0] or " "}, ":high": {"S": between[1]}}
        if begins is not None:
            condition = f"{condition} AND begins_with({RANGE}, :begins)"
            values = values | {":begins": {"S": begins}}
        request: Item = {
            "TableName": self._name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ConsistentRead": True,
            "ScanIndexForward": not newest_first,
            **({} if limit is None else {"Limit": limit}),
        }
        while True:
            answer = self._run(lambda client: client.query(**request))
            yield from (_untyped(item) for item in answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            if limit is not None:  # the caller needs more items than it expected, and probably many more
                request["Limit"] *= 4

    def remove(self, items: Iterable[Item]) -> None:
        """Delete the items one after the other."""
        for item in list(items):
            self.delete_alone((item[HASH], item[RANGE]))

    def delete_alone(self, key: Key) -> None:
        """Delete the item unconditionally. It need not exist."""
        self._run(lambda client: client.delete_item(TableName=self._name, Key=_typed_key(key)))

    def put_alone(self, item: Item) -> None:
        """Write the item unconditionally. It replaces an item with the same key."""
        self._run(lambda client: client.put_item(TableName=self._name, Item=_typed(item)))

    def write(self, actions: list[Item]) -> bool:
        """Carry out all actions. Returns False if a condition did not hold, other writers used the same items, or DynamoDB
        limited the requests: then nothing was done, and the caller looks at the items and tries again. The request is repeated
        with the same token until it is answered, so it is carried out once."""
        self._check_count(len(actions))
        token = str(uuid.uuid4())
        try:
            self._run(lambda client: client.transact_write_items(TransactItems=actions, ClientRequestToken=token))
        except TransactionCancelled as error:
            self._check_reasons(error)
            return False
        return True

    def _check_reasons(self, error: TransactionCancelled) -> None:
        """Raises CoordinatorUnavailableError, unless DynamoDB cancelled the request because of a condition, of another writer
        or of too many requests: then the caller may try again."""
        if not set(error.reasons) <= _WORTH_ANOTHER_TRY:
            raise unavailable_error(self.shown, error) from error

    def _check_count(self, count: int) -> None:
        """Raises UnsupportedOperationError if one request of DynamoDB cannot have so many items."""
        if count > _MOST_ITEMS:
            raise UnsupportedOperationError(
                f"The coordinator {self.shown} cannot change {count} items in one request: DynamoDB allows {_MOST_ITEMS}. "
                "Each table and each commit takes one or two items. Nothing was done. Commit to fewer tables at once, or use a "
                "coordinator in PostgreSQL.",
                items=count,
            )

    def check_length(self, what: str, text: str, limit_bytes: int) -> None:
        """Raises UnsupportedOperationError if a text is too long for a key. what: the text's meaning, for the message."""
        if (length := len(text.encode())) > limit_bytes:
            raise UnsupportedOperationError(
                f"The coordinator {self.shown} cannot store the {what} {shown(text[:100])}...: it has {length} bytes, "
                f"and DynamoDB allows {limit_bytes}. Nothing was done. Use a shorter one, or a coordinator in PostgreSQL.",
                bytes=length,
            )

    # ------------------------------------------------------------ actions for `write`, which carries them out

    def put_action(self, key: Key, values: Item, required: Item | None = None) -> Item:
        """An action that writes an item. required: attributes that the replaced item must have; None or empty: no item may have
        the key."""
        item = {"TableName": self._name, "Item": _typed(key_attributes(key) | values)}
        if required:
            return {"Put": item | _conditions(required)}
        return {"Put": item | {"ConditionExpression": f"attribute_not_exists({HASH})"}}

    def update_action(self, key: Key, changes: Item, required: Item) -> Item:
        """An action that sets the attributes `changes` if those of `required` still have these values."""
        conditions = _conditions(required)
        names = {f"#u{number}": name for number, name in enumerate(changes)}
        values = {f":u{number}": value for number, value in enumerate(changes.values())}
        text = ", ".join(f"#u{number} = :u{number}" for number in range(len(changes)))
        conditions["ExpressionAttributeNames"] |= names
        conditions["ExpressionAttributeValues"] |= _typed(values)
        return {"Update": {"TableName": self._name, "Key": _typed_key(key), "UpdateExpression": f"SET {text}", **conditions}}

    def check_action(self, key: Key, required: Item) -> Item:
        """An action that changes nothing, and succeeds only if the item has the attributes `required`."""
        return {"ConditionCheck": {"TableName": self._name, "Key": _typed_key(key), **_conditions(required)}}

    def delete_action(self, key: Key, required: Item) -> Item:
        """An action that deletes an item. required: attributes that the item must have; empty to delete it in any state."""
        return {"Delete": {"TableName": self._name, "Key": _typed_key(key), **(_conditions(required) if required else {})}}


def _conditions(required: Item) -> Item:
    """The part of an action that requires these attributes. Placeholders stand for the names, as DynamoDB reserves many words."""
    return {
        "ConditionExpression": " AND ".join(f"#c{number} = :c{number}" for number in range(len(required))),
        "ExpressionAttributeNames": {f"#c{number}": name for number, name in enumerate(required)},
        "ExpressionAttributeValues": _typed({f":c{number}": value for number, value in enumerate(required.values())}),
    }


def _typed(values: Item) -> Item:
    """`{"size": 3}` -> `{"size": {"N": "3"}}`: the form of requests and answers."""
    return {name: _typed_value(value) for name, value in values.items()}


def _typed_value(value: Any) -> Item:
    if isinstance(value, bytes):
        return {"B": value}
    return {"N": str(value)} if isinstance(value, int) else {"S": value}


def _typed_key(key: Key) -> Item:
    return _typed(key_attributes(key))


def key_attributes(key: Key) -> Item:
    """The attributes of an item that are its key."""
    return {HASH: key[0], RANGE: key[1]}


def _untyped(item: Item) -> Item:
    """The reverse of _typed: `{"size": {"N": "3"}}` -> `{"size": 3}`."""
    return {name: int(value["N"]) if "N" in value else value.get("S", value.get("B")) for name, value in item.items()}


def _without_user(endpoint: str) -> str:
    """Only the scheme, host and port of a URL, because the rest may contain a password. A text without a host is not changed."""
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else endpoint


def _parse_seconds(name: str, text: str | None, default: float) -> float:
    """The number of seconds in a parameter of the URL. text: None if the URL lacks the parameter. Raises InvalidOptionError."""
    try:
        number = default if text is None else float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        what = f"The URL of a coordinator in DynamoDB has {name}={text!r}"
        raise InvalidOptionError(f"{what}, which is no number of seconds above 0. Correct it.", option="coordinator")
    return number
