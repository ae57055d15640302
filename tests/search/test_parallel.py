"""Work in processes: batches and sweeps in one program, in any order."""

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
