"""Work in processes: batches and sweeps in one program, in any order."""

import os
import time

import pytest

from tvm_serenity.search.parallel import MANY_AT_ONCE, all_or_failures, results

pytest.importorskip("joblib")
ITEMS = list(range(3 * MANY_AT_ONCE))


def squared(value: int) -> int:
    return value * value


def batch() -> list[object]:
    return list(all_or_failures(squared, ITEMS, jobs=2))


def sweep() -> list[object]:
    with results(squared, ITEMS, jobs=2) as found:
        return [value for _, value in sorted(found)]


def test_batches_and_sweeps_share_processes() -> None:
    """A batch must leave nothing behind that joblib cannot use, for us or for the caller."""
    expected: list[object] = [value * value for value in ITEMS]
    for work in (batch, sweep, batch, batch, sweep):
        assert work() == expected


CALLS: list[int] = []
HELD: list[bytes] = []


def growing(item: tuple[int, int]) -> int:
    """The square of a number; the second call in a process keeps 350 MB and takes a second."""
    parent, value = item
    CALLS.append(value)
    if os.getpid() == parent:
        time.sleep(0.3)
    elif len(CALLS) == 2:
        HELD.append(b"x" * 350_000_000)
        time.sleep(1.2)  # loky looks at the memory of a worker once a second
    return value * value


@pytest.mark.parametrize("batch", [False, True])
def test_workers_that_grow_are_replaced_where_warnings_are_errors(batch: bool) -> None:
    pytest.importorskip("psutil")
    items = [(os.getpid(), value) for value in range(8)]
    expected = [value * value for value in range(8)]
    if batch:
        assert list(all_or_failures(growing, items, jobs=2)) == expected
        return
    with results(growing, items, jobs=2) as found:
        assert [value for _, value in sorted(found)] == expected
