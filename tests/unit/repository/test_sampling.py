"""Samples of similar cases: each case runs at some time, and the run reports what it sampled."""

from __future__ import annotations

import pytest

from tests.support.runs import sampling


@pytest.fixture(autouse=True)
def own_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "taken", [])
    monkeypatch.delenv("PYDELTA_ALL", raising=False)


def slices(cases: list[int], every: int, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    samples = []
    for number in range(every):
        monkeypatch.setattr(sampling, "sample_number", lambda number=number: number)
        samples.append(sampling.sampled(cases, every))
    return samples


def test_slices_of_all_numbers_hold_each_case_once(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = slices(list(range(23)), 5, monkeypatch)
    assert sorted(case for part in samples for case in part) == list(range(23))


def test_slice_of_few_cases_is_never_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = slices([1, 2], 5, monkeypatch)
    assert all(samples) and {case for part in samples for case in part} == {1, 2}


def test_all_cases_are_taken_where_the_run_asks_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYDELTA_ALL", "1")
    assert sampling.sampled(range(7), 3) == list(range(7))


def test_number_in_the_environment_chooses_the_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    sampling.sample_number.cache_clear()
    monkeypatch.setenv("PYDELTA_SAMPLE", "2")
    try:
        assert sampling.sampled(range(7), 3) == [2, 5]
    finally:
        sampling.sample_number.cache_clear()


def test_summary_says_how_many_of_how_many_each_file_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "sample_number", lambda: 0)
    sampling.sampled(range(10), 3)
    sampling.sampled(range(4), 2)
    assert sampling.summary() == ["test_sampling.py: 6 of 14 cases"]


def test_slow_properties_make_more_examples_if_all_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYDELTA_ALL", raising=False)
    assert sampling.examples(25) == sampling.examples(25, 60) == 25
    monkeypatch.setenv("PYDELTA_ALL", "1")
    assert (sampling.examples(25), sampling.examples(25, 60)) == (100, 60)
