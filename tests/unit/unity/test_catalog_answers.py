"""Answers that no honest server gives are refused before anything of them is used."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from delta_py.unity.catalog_answers import catalog_table, credential_for, vended_credentials
from delta_py.unity.catalog_errors import CatalogAnswerError

TABLE: dict[str, Any] = {
    "metadata": {
        "table-uuid": "4143bcf2-e019-464c-ae49-da5c9abfb484",
        "table-type": "MANAGED",
        "location": "s3://bucket/t",
        "columns": {"type": "struct", "fields": []},
        "partition-columns": [],
        "properties": {"a": "b"},
    },
    "commits": [{"version": 1, "file-name": "x.json", "file-size": 10, "file-modification-timestamp": 1}],
    "latest-table-version": 1,
}
WRONG: list[tuple[str, Any]] = [
    *[("metadata", value) for value in (None, [], "x", {})],
    *[("metadata/table-uuid", value) for value in (None, 1, "", "../x", "a b", "x" * 101)],
    *[("metadata/table-type", value) for value in (None, "VIEW", 3)],
    *[("metadata/location", value) for value in (None, "", 7, ["s3://x"])],
    *[("metadata/properties", value) for value in ("x", {"a": 1}, {"a": None})],
    *[("metadata/columns", value) for value in ("x", [1])],
    *[("metadata/partition-columns", value) for value in ("x", [1])],
    *[("commits", value) for value in ("x", {}, [None], [{}], [{"version": 1}])],
    *[("commits/0/version", value) for value in (None, -1, 1.0, "1", True, 2**63)],
    *[("commits/0/file-name", value) for value in (None, "", 7)],
    *[("commits/0/file-size", value) for value in (None, -1, "x")],
    *[("latest-table-version", value) for value in (-1, "1", 1.5, True)],
]


def changed(form: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    form = copy.deepcopy(form)
    *parents, last = path.split("/")
    holder: Any = form
    for part in parents:
        holder = holder[int(part) if part.isdigit() else part]
    holder[last] = value
    return form


def test_honest_answer_is_understood() -> None:
    table = catalog_table(TABLE, "c.s.t")
    assert (table.is_managed, table.location, table.newest_version, len(table.commits)) == (True, "s3://bucket/t", 1, 1)


@pytest.mark.parametrize(("path", "value"), WRONG, ids=[f"{path}={value!r}"[:50] for path, value in WRONG])
def test_answer_that_breaks_the_rules_is_refused(path: str, value: Any) -> None:
    with pytest.raises(CatalogAnswerError, match="Nothing was read or written"):
        catalog_table(changed(TABLE, path, value), "c.s.t")


def credentials(*prefixes: str, **config: Any) -> dict[str, Any]:
    entries = [{"prefix": prefix, "operation": "READ", "config": {**config, "s3.session-token": prefix}} for prefix in prefixes]
    return {"storage-credentials": entries}


def test_credential_with_the_longest_prefix_is_used() -> None:
    answer = credentials("s3://b", "s3://b/x/", "s3://b/x/table-of-another", "s3://b/x/t")
    assert credential_for(vended_credentials(answer, "t"), "s3://b/x/t/", "t").prefix == "s3://b/x/t"
    assert credential_for(vended_credentials(answer, "t"), "s3://b/x/table", "t").prefix == "s3://b/x/"


def test_credential_for_another_place_is_not_used() -> None:
    with pytest.raises(CatalogAnswerError, match="none for s3://b/x/t"):
        credential_for(vended_credentials(credentials("s3://b/x/tt", "s3://c"), "t"), "s3://b/x/t", "t")


def test_credentials_become_storage_options_by_known_names() -> None:
    config = {"s3.access-key-id": "i", "s3.secret-access-key": "k", "azure.sas-token": "s", "gcs.oauth-token": "g", "x": "y"}
    [credential] = vended_credentials(credentials("s3://b", **config), "t")
    assert credential.options == {
        "s3.access_key_id": "i",
        "s3.secret_access_key": "k",
        "s3.session_token": "s3://b",
        "azure.sas_token": "s",
        "gcs.access_token": "g",
    }


@pytest.mark.parametrize("secret", ["two\nlines", "", 17, "x" * 200_000, "\x1b[2J"])
def test_invalid_secret_is_refused_and_not_shown(secret: Any) -> None:
    with pytest.raises(CatalogAnswerError) as refused:
        vended_credentials(credentials("s3://b", **{"s3.secret-access-key": secret}), "t")
    assert not secret or str(secret) not in str(refused.value)


def test_secrets_are_not_shown() -> None:
    shown = repr(vended_credentials(credentials("s3://b", **{"s3.secret-access-key": "very-secret"}), "t"))
    assert "very-secret" not in shown and "s3://b" in shown
