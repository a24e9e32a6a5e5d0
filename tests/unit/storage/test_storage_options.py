"""StorageOptions and addresses: names, values, hidden secrets, places in stores."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.object_stores.open_store import open_store
from delta_py.object_stores.remote import RemoteStore
from delta_py.storage.addresses import Address, address_of, can_reach, canonical, is_same_place, is_within
from delta_py.storage.local import LocalStore
from delta_py.storage.store_options import OPTION_NAMES, StorageOptions


def test_secrets_are_in_no_text_and_in_the_pickle_that_travels() -> None:
    secrets = {option.name: f"hush-{number}" for number, option in enumerate(OPTION_NAMES) if option.is_secret}
    options = StorageOptions.of({**secrets, "s3.region": "here"})
    store = RemoteStore("s3://bucket/t", options)
    for text in (repr(options), str(options), repr(store), repr(open_store("s3://bucket/t", options)), f"{[options]}"):
        assert "hush" not in text
    assert pickle.loads(pickle.dumps(store)).options == options
    message = options.hide(f"Wrong key {secrets['s3.secret_access_key']} in here")
    assert message == "Wrong key ... in here"


def test_names_are_taken_in_any_case_and_unknown_ones_refused() -> None:
    assert StorageOptions.of({"S3.Region": "a"}) == StorageOptions.of({"s3.region": "a"})
    with pytest.raises(InvalidOptionError, match=r"gcs\.project"):
        StorageOptions.of({"gcs.projekt": "a"})


@pytest.mark.parametrize("value", ["yes", "1", ""])
def test_flag_that_is_no_boolean_is_refused(value: str) -> None:
    options = StorageOptions.of({"s3.anonymous": value})
    if value == "":
        assert options.flag("s3.anonymous") is False
        return
    with pytest.raises(InvalidOptionError, match=r"s3\.anonymous"):
        options.flag("s3.anonymous")


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon", ""])
def test_number_that_is_none_above_zero_is_refused(value: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"storage\.retry_timeout"):
        StorageOptions.of({"storage.retry_timeout": value}).number("storage.retry_timeout", 1.0)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("s3://b/a/t/", Address("s3", "", "b", "a/t")),
        ("s3a://b", Address("s3", "", "b", "")),
        ("S3://b/a%20b c#d?e", Address("s3", "", "b", "a%20b c#d?e")),
        ("gs://b/t", Address("gs", "", "b", "t")),
        ("az://c/t", Address("az", "", "c", "t")),
        ("abfss://c@Acme.dfs.core.windows.net/a/t", Address("az", "acme", "c", "a/t")),
        ("wasbs://c@acme.blob.core.windows.net/t", Address("az", "acme", "c", "t")),
        ("abfss://c@acme.dfs.core.chinacloudapi.cn/t", Address("az", "acme.core.chinacloudapi.cn", "c", "t")),
        ("abfss://c@onelake.dfs.fabric.microsoft.com/t", Address("az", "onelake.fabric.microsoft.com", "c", "t")),
    ],
)
def test_url_of_a_store_is_a_place_in_it(url: str, address: Address) -> None:
    assert address_of(url) == address
    assert address_of(canonical(url)) == address


@pytest.mark.parametrize("url", ["s3:///t", "s3://key:secret@b/t", "abfss://c/t", "gs://"])
def test_url_without_a_container_or_with_credentials_is_refused(url: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        address_of(url)
    assert "secret" not in caught.value.message.replace("Credentials", "")


def test_scheme_that_no_store_serves_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedOperationError, match="hdfs"):
        open_store("hdfs://name/t")


def test_root_is_the_same_however_the_url_is_spelled() -> None:
    assert open_store("S3://b/t/").root == open_store("s3://b/t").root == "s3://b/t"


def test_nothing_of_this_machine_is_read_for_a_table_in_a_store() -> None:
    store = open_store("s3://b/t")
    for path in ("/etc/hostname", "file:/etc/hostname", "hdfs://name/x"):
        with pytest.raises(UnsupportedOperationError):
            store.read(path)


def test_file_in_another_store_is_read_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, str]] = []
    monkeypatch.setattr(RemoteStore, "read", lambda self, path: opened.append((self.root, path)) or b"")
    options = StorageOptions.of({"s3.region": "r"})
    open_store("/data/t", options).read("s3://b/a/f.parquet")
    open_store("gs://c/t", options).read("s3://b/a/f.parquet")
    open_store("s3://b/t", options).read("s3a://other/f.parquet")
    assert opened == [("s3://b/a", "f.parquet"), ("s3://b/a", "f.parquet"), ("s3://b/t", "s3a://other/f.parquet")]


def test_path_of_python_is_its_text(tmp_path: Path) -> None:
    write_delta(tmp_path / "t", pa.table({"id": [1]}))
    write_delta(f"{tmp_path}/t", pa.table({"id": [2]}), mode="append")
    assert DeltaTable(tmp_path / "t@v0").version == 0
    assert DeltaTable(tmp_path / "t").clone(tmp_path / "copy").to_arrow().num_rows == 2
    for wrong in (None, 3, b"/t", ["/t"]):
        with pytest.raises(InvalidOptionError, match="path of the table") as raised:
            DeltaTable(wrong)  # type: ignore[arg-type]
        assert type(wrong).__name__ in str(raised.value)


def test_version_that_is_no_whole_number_is_refused(tmp_path: Path) -> None:
    write_delta(tmp_path, pa.table({"id": [1]}))
    with pytest.raises(InvalidOptionError, match="version is '0'"):
        DeltaTable(tmp_path, version="0")  # type: ignore[arg-type]


def test_local_table_is_as_it_was(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("t")
    store = open_store(str(directory))
    store.put("a", b"1")
    assert LocalStore(str(directory)).read("a") == b"1" and not store.is_remote


@pytest.mark.parametrize(
    ("root", "other", "is_in_reach"),
    [
        ("/data/t", "/data/u", True),
        ("/data/t", "u", False),
        ("/data/t", "file:/data/u", False),
        ("/data/t", "s3://bucket/u", False),
        ("/data/t", "https://host/u", False),
        ("s3://bucket/t", "s3a://other/u", True),
        ("s3://bucket/t", "s3://user:password@other/u", False),
        ("s3://bucket/t", "s3:///u", False),
        ("s3://bucket/t", "gs://bucket/u", False),
        ("s3://bucket/t", "/data/u", False),
        ("abfss://c@acme.dfs.core.windows.net/t", "abfs://d@acme.blob.core.windows.net/u", True),
        ("abfss://c@acme.dfs.core.windows.net/t", "abfss://c@other.dfs.core.windows.net/u", False),
        ("abfss://c@acme.dfs.core.windows.net/t", "abfss://c@acme.dfs.evil.net/u", False),
        ("abfss://c@acme.dfs.core.windows.net/t", "az://c/u", False),
        ("az://c/t", "az://d/u", True),
    ],
)
def test_other_table_is_in_reach_if_it_shares_the_server(root: str, other: str, is_in_reach: bool) -> None:
    assert can_reach(root, other) is is_in_reach


@pytest.mark.parametrize(
    ("root", "other", "is_same"),
    [
        ("s3://bucket/t", "s3a://bucket/t/", True),
        ("s3://bucket/t", "s3://bucket/t2", False),
        ("s3://bucket/t", "gs://bucket/t", False),
        ("s3://bucket/t", "/bucket/t", False),
        ("az://files/t", "abfss://files@account.dfs.core.windows.net/t", True),
        ("abfss://files@other.dfs.core.windows.net/t", "abfss://files@account.dfs.core.windows.net/t", False),
    ],
)
def test_roots_are_one_place_however_they_are_spelled(root: str, other: str, is_same: bool) -> None:
    assert is_same_place(root, other) is is_same_place(other, root) is is_same


@pytest.mark.parametrize(
    ("root", "other", "is_inside"),
    [
        ("s3://bucket/t/u", "s3a://bucket/t/", True),
        ("s3://bucket/t", "s3://bucket", True),
        ("s3://bucket/t2", "s3://bucket/t", False),
        ("s3://bucket", "s3://bucket/t", False),
        ("s3://other/t/u", "s3://bucket/t", False),
        ("/data/t/u", "/data/t", True),
        ("/data/t", "/", True),
        ("/data/t/../u", "/data/t", False),
        ("/bucket/t", "s3://bucket", False),
    ],
)
def test_a_place_lies_in_another(root: str, other: str, is_inside: bool) -> None:
    assert (is_within(root, other), is_within(root, root)) == (is_inside, True)


def test_local_roots_are_equal_if_they_lead_to_one_directory(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "t")
    assert is_same_place(f"{tmp_path}/t/", f"{tmp_path}/link") and not is_same_place(f"{tmp_path}/t", str(tmp_path))
