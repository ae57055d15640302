"""The accesses of ops, block by block: operands are streamed in lockstep; flat arrays for all ops.

The arrays are built without a Python loop over the ops: a graph of a million ops takes about a
second.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tvm_serenity.graph.arrays import ints

READ, WRITE, MODIFY = 1, 2, 3

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Bytes8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Spans:
    """Operands: op ``op[i]`` accesses ``count[i]`` blocks from ``first[i]`` on, as ``kind[i]``.

    Ops ascend, and the operands of each op have its own order.
    """

    op: Longs
    first: Longs
    count: Longs
    kind: Bytes8

    @staticmethod
    def of(rows: Sequence[tuple[int, int, int, int]]) -> "Spans":
        """Return the spans of rows (op, first block, last + 1, kind)."""
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        op, first, end, kind = table.T
        return Spans(op, first, end - first, kind.astype(np.uint8))


@dataclass(frozen=True)
class Accesses:
    """Accesses of ops, one op after the other: op i has the accesses from ``begin[i]`` on.

    Its groups are those from ``group[i]`` on; each ends before access ``ends[g]``, counted from the
    op's first access. A scratchpad must hold the blocks of a group at once, beside ``reserve[i]``
    bytes; a cache takes accesses one by one.
    """

    begin: Longs
    block: Ints
    kind: Bytes8
    group: Longs
    ends: Longs
    reserve: Longs

    def in_order(self, order: Sequence[int]) -> "Accesses":
        """Return the accesses with the ops in another order."""
        if isinstance(order, range) and order == range(len(self.reserve)):
            return self
        listed = ints(order, len(order))
        lengths, groups = np.diff(self.begin)[listed], np.diff(self.group)[listed]
        taken = runs(self.begin[listed], lengths)
        return Accesses(
            begin=sums(lengths),
            block=self.block[taken],
            kind=self.kind[taken],
            group=sums(groups),
            ends=self.ends[runs(self.group[listed], groups)],
            reserve=self.reserve[listed],
        )


def streamed(ops: int, spans: Spans, work: Spans, scratchpad: bool, reserve: Longs) -> Accesses:
    """Return accesses that write scratch, stream all operands in lockstep, then read scratch.

    ``work`` are the blocks of scratch. A group is one step of an op; in a cache it is one access.
    """
    longest = np.zeros(ops, dtype=np.int64)
    np.maximum.at(longest, spans.op, spans.count)
    which = np.repeat(np.arange(len(spans.op)), spans.count)
    every, block = spans.op[which], runs(spans.first, spans.count)
    # block b of n is accessed in the step that reaches b / n of the longest operand
    step = (block - spans.first[which]) * longest[every] // spans.count[which]
    kind = spans.kind[which]
    if len(work.op):
        scratch, around = np.repeat(work.op, work.count), runs(work.first, work.count)
        every = np.concatenate([every, scratch, scratch])
        step = np.concatenate([step, np.full(len(scratch), -1), longest[scratch]])
        block = np.concatenate([block, around, around])
        added = [np.full(len(scratch), kind, np.uint8) for kind in (WRITE, READ)]
        kind = np.concatenate([kind, *added])
    key = every * (int(longest.max(initial=0)) + 2) + step + 1
    if (np.diff(key) < 0).any():
        place = np.argsort(key, kind="stable")
        key, every, block, kind = key[place], every[place], block[place], kind[place]
    begin = sums(np.bincount(every, minlength=ops))
    ends, owner = np.arange(1, len(key) + 1), every
    if scratchpad:
        ends = np.flatnonzero(np.diff(key, append=np.iinfo(np.int64).max) > 0) + 1
        owner = every[ends - 1]
    ends -= begin[owner]
    alone = np.flatnonzero((reserve > 0) & (np.diff(begin) == 0))  # ops that access scratch alone
    if len(alone):
        owner, ends = np.concatenate([owner, alone]), np.concatenate([ends, 0 * alone])
        place = np.argsort(owner, kind="stable")
        owner, ends = owner[place], ends[place]
    return Accesses(
        begin, block.astype(np.int32), kind, sums(np.bincount(owner, minlength=ops)), ends, reserve
    )


def sums(counts: Longs) -> Longs:
    """Return where each of several consecutive runs begins, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def runs(first: Longs, count: Longs) -> Longs:
    """Return ``count[i]`` numbers from ``first[i]`` on, run after run."""
    ends = np.cumsum(count, dtype=np.int64)
    numbers: Longs = np.repeat(first - ends + count, count) + np.arange(int(count.sum()))
    return numbers
