"""Repeated keys are found, however they are spread over batches and whatever their hashes are."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_py.log import file_keys
from delta_py.log.file_keys import key_hashes, repeated_keys

KEYS = st.one_of(
    st.sampled_from(["a", "b", "a\0u1", "a\0u1@4", "", "part-0", "part-00000000", "part-00000001", "x" * 520, "x" * 520 + "y"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
BATCHES = st.lists(st.lists(KEYS, max_size=6), max_size=4)


def as_batch(keys: list[str]) -> pa.LargeStringArray:
    """A slice of a longer array, as batches often are."""
    return pa.array(["before", *keys, "behind"], pa.large_string()).slice(1, len(keys))


def check(batches: list[list[str]]) -> None:
    count, repeated = repeated_keys(lambda: map(as_batch, batches))
    times = Counter(key for batch in batches for key in batch)
    assert count == len(times)
    assert sorted(repeated.to_pylist()) == sorted(key for key, number in times.items() if number > 1)


@given(BATCHES)
def test_keys_that_come_more_than_once_are_found(batches: list[list[str]]) -> None:
    check(batches)


@given(BATCHES, st.integers(1, 3))
def test_equal_hashes_make_no_equal_keys(batches: list[list[str]], different: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_keys, "key_hashes", lambda keys: key_hashes(keys) % np.uint64(different))
        check(batches)


@given(st.lists(KEYS, min_size=1, max_size=6), st.lists(KEYS, max_size=6))
def test_the_hash_of_a_key_is_that_of_the_key_alone(keys: list[str], other_keys: list[str]) -> None:
    together = key_hashes(as_batch(other_keys + keys))[len(other_keys) :]
    assert together.tolist() == [int(key_hashes(pa.array([key], pa.large_string()))[0]) for key in keys]


def test_paths_of_many_files_have_hashes_of_their_own() -> None:
    paths = pa.array([f"day=2024-01-{number % 28:02}/part-{number:05}-c000.snappy.parquet" for number in range(100_000)])
    assert len(np.unique(key_hashes(paths.cast(pa.large_string())))) == 100_000
