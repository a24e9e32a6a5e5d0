"""Path text: any name round-trips, one at a time and in columns."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_py.errors import CorruptTableError
from delta_py.protocol.paths import (
    MAX_VERSION,
    commit_file_name,
    decode_path,
    decode_paths,
    encode_path,
    parse_log_name,
    partition_directory,
    partition_texts_of,
    version_prefix,
)

CHARACTERS = st.characters(exclude_categories=["Cs"])
RAW = st.text(st.one_of(st.sampled_from("%/:#?+ 20aAfF."), CHARACTERS), max_size=12)
SEGMENTS = st.text(CHARACTERS.filter(lambda c: c != "/"), min_size=1, max_size=8)
RELATIVE = st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join)


@given(RELATIVE)
def test_a_path_that_decoding_can_give_survives_encoding(path: str) -> None:
    canonical = decode_path(encode_path(path))
    assert canonical in (path, f"./{path}")  # a directory named like a scheme is marked as relative
    assert decode_path(encode_path(canonical)) == canonical
    assert decode_path(encode_path(f"/{path}")) == f"/{path}"


@given(RELATIVE)
def test_encoded_paths_hold_nothing_that_a_uri_may_not(path: str) -> None:
    encoded = encode_path(path)
    assert not set(encoded) & set(' "#?<>[]\\^`{|}')
    assert ":" not in encoded.partition("/")[0]


@given(RAW)
def test_what_decoding_gives_is_canonical(text: str) -> None:
    try:
        path = decode_path(text)
    except CorruptTableError:
        return
    assert decode_path(encode_path(path)) == path


@given(st.lists(st.one_of(st.none(), RAW), max_size=8), st.integers(0, 8))
def test_decoding_a_column_is_decoding_each_value(texts: list[str | None], start: int) -> None:
    try:
        expected = [None if text is None else decode_path(text) for text in texts]
    except CorruptTableError:
        return
    array = pa.array(texts, pa.string())
    assert decode_paths(array).to_pylist() == expected
    assert decode_paths(array.slice(start)).to_pylist() == expected[start:]
    assert decode_paths(pa.chunked_array([array[:start], array[start:]])).to_pylist() == expected


@given(st.lists(st.tuples(SEGMENTS, st.text(CHARACTERS, max_size=8)), min_size=1, max_size=3))
def test_partition_directories_keep_columns_apart(values: list[tuple[str, str]]) -> None:
    segments = partition_directory(values).split("/")
    assert len(segments) == len(values)
    assert all(segment.count("=") == 1 for segment in segments)


@given(st.lists(st.tuples(SEGMENTS, st.none() | st.text(CHARACTERS, max_size=8)), max_size=3), st.booleans())
def test_partition_directories_are_taken_apart_as_they_were_made(values: list[tuple[str, str | None]], below: bool) -> None:
    directory = partition_directory(values)
    path = f"sub/{directory}/a=b.parquet" if below and directory else f"{directory}/a=b.parquet".lstrip("/")
    assert partition_texts_of(path) == tuple((name, text or None) for name, text in values)


@given(st.one_of(st.text(max_size=40), st.text("0123456789.jsonparquetcheckpointcompactedcrc_-", max_size=60)))
def test_any_name_is_a_log_name_or_none(name: str) -> None:
    parsed = parse_log_name(name)
    assert parsed is None or parsed.name == name


@given(st.lists(st.integers(0, MAX_VERSION), min_size=2, max_size=5))
def test_names_of_the_log_sort_as_their_versions(versions: list[int]) -> None:
    names = sorted(commit_file_name(version) for version in versions)
    assert [parsed.version for name in names if (parsed := parse_log_name(name)) is not None] == sorted(versions)
    assert all(commit_file_name(version).startswith(version_prefix(version)) for version in versions)
