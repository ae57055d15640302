"""What ops access, as flat arrays of all ops, equals what each accesses when listed by itself."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_serenity.offchip.accesses import MODIFY, READ, WRITE, Spans, streamed

Row = tuple[int, int, int, int]


def listed(
    spans: list[Row], work: list[Row], reserve: int, scratchpad: bool
) -> tuple[list[tuple[int, int]], list[int]]:
    """(block, kind) of an op's accesses, and where each of its groups ends."""
    longest = max((end - first for _, first, end, _ in spans), default=0)
    middle = sorted(
        (number * longest // (end - first), rank, first + number, kind)
        for rank, (_, first, end, kind) in enumerate(spans)
        for number in range(end - first)
    )
    scratch = [block for _, first, end, _ in work for block in range(first, end)]
    found = [(block, WRITE) for block in scratch]
    found += [(block, kind) for _, _, block, kind in middle]
    found += [(block, READ) for block in scratch]
    if not scratchpad:
        return found, list(range(1, len(found) + 1))
    ends = [
        i + 1
        for i in range(len(middle))
        if [s for s, *_ in middle[i : i + 2]].count(middle[i][0]) == 1
    ]
    return found, ends or ([0] if reserve else [])


@pytest.mark.parametrize("scratchpad", [False, True])
@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_arrays_of_all_ops_equal_lists_of_each(scratchpad: bool, seed: int) -> None:
    rng = random.Random(seed)
    ops = rng.randint(0, 8)
    spans, work = list[Row](), list[Row]()
    for op in range(ops):
        for _ in range(rng.randint(0, 4)):
            first = rng.randint(0, 40)
            kind = rng.choice([READ, WRITE, MODIFY])
            spans.append((op, first, first + rng.randint(0, 9), kind))
        if not scratchpad and rng.random() < 0.3:
            work.append((op, 100 + op, 100 + op + rng.randint(0, 3), WRITE))
    reserve = np.array([rng.choice([0, 7]) if scratchpad else 0 for _ in range(ops)], np.int64)
    found = streamed(ops, Spans.of(spans), Spans.of(work), scratchpad, reserve)
    order = rng.sample(range(ops), ops)
    turned = found.in_order(order)
    assert turned.in_order(np.argsort(order).tolist()).block.tolist() == found.block.tolist()
    for made, places in ((found, list(range(ops))), (turned, order)):
        for step, op in enumerate(places):
            own = slice(made.begin[step], made.begin[step + 1])
            groups = slice(made.group[step], made.group[step + 1])
            accesses, ends = listed(
                [s for s in spans if s[0] == op],
                [w for w in work if w[0] == op],
                int(reserve[op]),
                scratchpad,
            )
            assert list(zip(made.block[own], made.kind[own], strict=True)) == accesses
            assert made.ends[groups].tolist() == ends
            assert made.reserve[step] == reserve[op]
