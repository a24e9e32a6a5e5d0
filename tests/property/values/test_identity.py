"""Identity columns: whatever tasks and rows a write has, each number is given once and the high water mark is the last one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delta_py.protocol.identity_columns import Identity
from delta_py.row_rules.identity_numbers import IdentityValues

STEPS = st.integers(-7, 7).filter(bool)
WRITES = st.lists(
    st.tuples(st.booleans(), st.lists(st.lists(st.integers(0, 300), max_size=4), min_size=1, max_size=9)), min_size=1, max_size=4
)


@given(start=st.integers(-1000, 1000), step=STEPS, writes=WRITES)
def test_numbers_of_writes_one_after_the_other(start: int, step: int, writes: list[tuple[bool, list[list[int]]]]) -> None:
    """A write: whether its number of tasks is known, and for each task the sizes of its batches."""
    mark: int | None = None
    seen: set[int] = set()
    for is_count_known, tasks in writes:
        column = Identity("id", start, step, mark, False)
        numbers: list[int] = []
        marks: list[int] = []
        for task, batches in enumerate(tasks):
            values = IdentityValues([column], task, len(tasks) if is_count_known else None)
            numbers += [number for size in batches for number in values.take("id", size).to_pylist()]
            marks += [number for _, number in values.marks]
        assert len(set(numbers)) == len(numbers) == sum(size for batches in tasks for size in batches)
        assert not seen & set(numbers)
        assert all((number - start) % step == 0 and (number - start) // step >= 0 for number in numbers)
        if numbers:
            mark = max(numbers) if step > 0 else min(numbers)
            assert mark == (max(marks) if step > 0 else min(marks))
        seen |= set(numbers)
