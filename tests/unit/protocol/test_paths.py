from __future__ import annotations

import pyarrow as pa
import pytest

from delta_py.errors import CorruptTableError
from delta_py.protocol import paths
from delta_py.protocol.paths import (
    LogKind,
    decode_path,
    decode_paths,
    encode_path,
    encode_paths,
    parse_log_name,
    partition_directory,
    resolve,
)

DECODED = [
    ("part-0.parquet", "part-0.parquet"),
    ("_2=bar+%252521/part-0.parquet", "_2=bar+%2521/part-0.parquet"),  # a Hive-escaped name, escaped again as a URI
    ("ps=é%252520+x/p", "ps=é%2520+x/p"),
    ("ps=%C3%A9/p", "ps=é/p"),
    ("special%20p@%23h", "special p@#h"),
    ("/some/unqualified/with%20space/p@%23h", "/some/unqualified/with space/p@#h"),
    ("file:/some/unqualified/with%20space/p@%23h", "/some/unqualified/with space/p@#h"),
    ("file:///some/unqualified/with%20space/p@%23h", "/some/unqualified/with space/p@#h"),
    ("FILE:/a", "/a"),
    ("file://localhost/a", "/a"),
    ("file:////a", "/a"),
    ("//a/b", "/a/b"),
    ("file://host/a", "file://host/a"),
    ("s3://bucket/a%20b", "s3://bucket/a b"),
    ("time=1971-07-22T03:06:40.000000Z/p", "time=1971-07-22T03:06:40.000000Z/p"),
    ("dbfs%3A/x", "./dbfs:/x"),  # relative, although it looks like a URI after decoding
    ("100%", "100%"),
    ("%zz/%4", "%zz/%4"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "path"), DECODED)
def test_decode_path_gives_the_canonical_path(text: str, path: str) -> None:
    assert decode_path(text) == path


@pytest.mark.parametrize("path", sorted({path for _, path in DECODED}))
def test_encode_path_of_a_canonical_path_decodes_to_it(path: str) -> None:
    assert decode_path(encode_path(path)) == path


def test_encode_paths_is_encode_path_of_each() -> None:
    odd = ["a:b/c", "day=a b/x", "/abs", "s3://b/a b", "ä/\u2028", "plain/x.parquet", ""]
    texts = [*sorted({path for _, path in DECODED}), *odd]
    expected = [encode_path(path) for path in texts]
    assert encode_paths(pa.array(texts)).to_pylist() == expected
    assert encode_paths(pa.chunked_array([texts[:3], texts[3:]])).to_pylist() == expected
    plain = pa.array(["day=1/x-0.parquet", "a@b&c=+$,;!~'()*"])
    assert encode_paths(plain) is plain and [encode_path(path) for path in plain.to_pylist()] == plain.to_pylist()


def test_decode_paths_of_an_array_agrees_with_decode_path() -> None:
    texts = [None, *(text for text, _ in DECODED), None]
    expected = [None, *(path for _, path in DECODED), None]
    for kind in (pa.string(), pa.large_string()):
        array = pa.array(texts, kind)
        assert decode_paths(array).to_pylist() == expected
        assert decode_paths(array).type == kind
        assert decode_paths(array.slice(3)).to_pylist() == expected[3:]
    chunked = pa.chunked_array([texts[:4], texts[4:], []], pa.string())
    assert decode_paths(chunked).to_pylist() == expected


def test_decode_paths_without_escapes_returns_the_same_array() -> None:
    array = pa.array(["a=1/part-0.parquet", None, ""])
    assert decode_paths(array) is array
    chunked = pa.chunked_array([array, array])
    assert decode_paths(chunked) is chunked
    assert decode_paths(array.slice(0, 0)).to_pylist() == []


def test_decode_paths_ignores_an_escape_split_over_two_values() -> None:
    assert decode_paths(pa.array(["a%", "20b", "%2", "0", "x%20"])).to_pylist() == ["a%", "20b", "%2", "0", "x "]


@pytest.mark.parametrize("decode", [decode_path, lambda text: decode_paths(pa.array(["a%20b", text]))])
def test_decode_of_escapes_that_are_no_utf8_names_the_path(decode) -> None:
    with pytest.raises(CorruptTableError, match="caf%E9"):
        decode("caf%E9/part-0")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ps=a b/part-0", "ps=a%20b/part-0"),
        ("ts=2024-01-01 10%3A00/p", "ts=2024-01-01%2010%253A00/p"),
        ("c2=+ %3D%251/p", "c2=+%20%253D%25251/p"),
        ("ps=é/p", "ps=é/p"),
        ("a\u00a0b\u2028", "a%C2%A0b%E2%80%A8"),  # white space beyond ASCII
        ('q?#[]{}|\\^`<>"', "q%3F%23%5B%5D%7B%7D%7C%5C%5E%60%3C%3E%22"),
        ("a:b/c:d", "a%3Ab/c:d"),
        ("/abs/x y", "file:/abs/x%20y"),
        ("s3://bucket/a b%", "s3://bucket/a%20b%25"),
    ],
)
def test_encode_path_writes_what_java_writes(path: str, text: str) -> None:
    assert encode_path(path) == text


def test_resolve_puts_only_relative_paths_below_the_table() -> None:
    assert resolve("/t", "a=1/x") == "/t/a=1/x"
    assert resolve("s3://b/t/", "x") == "s3://b/t/x"
    assert resolve("/t", "/other/x") == "/other/x"
    assert resolve("/t", "s3://b/x") == "s3://b/x"
    assert resolve("/t", "./dbfs:/x") == "/t/./dbfs:/x"


UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def test_log_names_are_built_and_parsed_back() -> None:
    built = {
        paths.commit_file_name(42): (LogKind.COMMIT, 42),
        paths.checksum_file_name(0): (LogKind.CHECKSUM, 0),
        paths.classic_checkpoint_name(10): (LogKind.CHECKPOINT_CLASSIC, 10),
        f"{10:020d}.checkpoint.{2:010d}.{3:010d}.parquet": (LogKind.CHECKPOINT_MULTIPART, 10),
        paths.v2_checkpoint_name(7, UUID, "json"): (LogKind.CHECKPOINT_V2, 7),
        paths.v2_checkpoint_name(7, UUID, "parquet"): (LogKind.CHECKPOINT_V2, 7),
        paths.compacted_file_name(4, 6): (LogKind.COMPACTION, 4),
        paths.commit_file_name(2**63 - 1): (LogKind.COMMIT, 2**63 - 1),
    }
    for name, (kind, version) in built.items():
        parsed = parse_log_name(name)
        assert parsed is not None
        assert (parsed.name, parsed.kind, parsed.version) == (name, kind, version)


def test_log_names_carry_their_details() -> None:
    part = parse_log_name("00000000000000000010.checkpoint.0000000002.0000000003.parquet")
    assert part is not None and (part.part, part.part_count, part.is_checkpoint) == (2, 3, True)
    v2 = parse_log_name(f"00000000000000000010.checkpoint.{UUID}.json")
    assert v2 is not None and (v2.unique, v2.extension, v2.is_checkpoint) == (UUID, "json", True)
    compaction = parse_log_name("00000000000000000004.00000000000000000006.compacted.json")
    assert compaction is not None and (compaction.end_version, compaction.is_checkpoint) == (6, False)
    hint = parse_log_name("_last_checkpoint")
    assert hint is not None and hint.kind is LogKind.LAST_CHECKPOINT


@pytest.mark.parametrize(
    "name",
    [
        "foo.json",
        "00000000000000000003.json.tmp",
        "00000000000000000009.checkpoint.parquet.tmp",
        ".00000000000000000009.json.crc",
        "1.json",
        "000000000000000000001.json",
        "99999999999999999999.json",
        f"{2**63:020d}.json",
        "-0000000000000000001.json",
        "\u0660" * 20 + ".json",
        "00000000000000000010.checkpoint.0000000004.0000000003.parquet",
        "00000000000000000010.checkpoint.0000000000.0000000003.parquet",
        "00000000000000000010.checkpoint.1.3.parquet",
        "00000000000000000010.checkpoint.a.b.parquet",
        "00000000000000000006.00000000000000000004.compacted.json",
        "00000000000000000006.00000000000000000006.compacted.json",
        "00000000000000000006.99999999999999999999.compacted.json",
        f"00000000000000000001.{UUID}.json",
        "00000000000000000001.json\n",
    ],
)
def test_a_name_that_is_no_log_name_is_none(name: str) -> None:
    assert parse_log_name(name) is None


def test_partition_directory_escapes_as_spark_does() -> None:
    assert partition_directory([]) == ""
    assert partition_directory([("a", "1"), ("b", "x:y z")]) == "a=1/b=x%3Ay z"
    assert partition_directory([("a", None), ("b", "")]) == "a=__HIVE_DEFAULT_PARTITION__/b=__HIVE_DEFAULT_PARTITION__"
    assert partition_directory([("c2", "+ =%1")]) == "c2=+ %3D%251"
    assert partition_directory([("ps", "c/d:e")]) == "ps=c%2Fd%3Ae"
    assert partition_directory([("a=b", "é\n\x7f{}[]^\"#'*?\\")]) == "a%3Db=é%0A%7F%7B}%5B%5D%5E%22%23%27%2A%3F%5C"


def test_data_file_names_are_spark_names() -> None:
    assert paths.data_file_name(3, UUID) == f"part-00003-{UUID}.c000.zstd.parquet"
    assert paths.data_file_name(3, UUID, 2, codec="none", change_data=True) == f"cdc-00003-{UUID}.c002.parquet"


def test_version_after_the_last_is_an_error_of_the_table() -> None:
    assert paths.commit_file_name(2**63 - 1) == "9223372036854775807.json".rjust(25, "0")
    with pytest.raises(CorruptTableError, match="no version 9223372036854775808"):
        paths.commit_file_name(2**63)
