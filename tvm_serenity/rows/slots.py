"""Slots: an output row and the input row it overlaps are placed as one block.

Slots are used where the planner finds no good placement: a row that must begin some bytes below the
row it overlaps leaves gaps that fit no other buffer. A *slot* is longer than one row by that
distance, lives as long as both rows together, and overlaps no other buffer, so that placement
becomes simple. A slot needs a few more bytes at every step of its life, and saves a row at the one
step where both rows are live. A limit on the live bytes decides which slots are used: each step
above the limit needs a slot of its own, and slots do not interfere with each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from tvm_serenity.plan import Buffer, Overlap, Plan, PlanOptions, plan
from tvm_serenity.search.deadline import seconds_left, within

TRIED = 3
"""Number of limits on the live bytes that are tried, from the smallest that slots can meet."""

MANY, MANY_STEPS = 500, 100_000
"""With more than ``MANY`` buffers, slots are tried only if the planner has ``MANY_STEPS`` steps."""


@dataclass(frozen=True, slots=True)
class OverlapPair:
    """An overlap of an output row ``made`` with a dying input row ``read`` (indices of buffers).

    ``made`` begins at least ``far`` bytes below ``read``; 0: at the same offset.
    """

    made: int
    read: int
    far: int

    def named(self, made: Buffer, read: Buffer) -> Buffer:
        """Return the buffer ``made`` with this overlap allowed, under the name of ``read``."""
        return replace(
            made,
            may_overlap=read.name,
            overlap=Overlap.BELOW if self.far else Overlap.START,
            distance_bytes=self.far,
        )


@dataclass(frozen=True)
class _Slots:
    """Slots: ``members`` are chains of buffers, each of which overlaps the one before it.

    ``begins``: per buffer, its offset in bytes within its slot.
    """

    members: tuple[tuple[int, ...], ...]
    begins: tuple[int, ...]

    def block(self, buffers: Sequence[Buffer], chain: Sequence[int]) -> Buffer:
        """Return the buffer that holds the slot of ``chain``."""
        first, last = buffers[chain[0]], buffers[chain[-1]]
        if len(chain) == 1:
            return first
        return Buffer(
            first.name,
            first.lower,
            last.upper,
            max(self.begins[i] + buffers[i].size_bytes for i in chain),
            max(buffers[i].alignment for i in chain),
        )


def in_slots(
    buffers: Sequence[Buffer], pairs: Sequence[OverlapPair], known: Plan, options: PlanOptions
) -> Plan:
    """Return a placement of ``buffers`` with slots, or ``known`` if it has no larger arena.

    ``pairs``: the allowed overlaps. Each buffer is at most once ``made`` and once ``read``, and
    ``made`` becomes live at the last step of ``read``. No slot is needed for a ``read`` buffer
    with a fixed offset. The plan's buffers and lower bound are those of the slots' blocks.
    """
    best, seconds = known, options.time_limit_s
    free = [p for p in pairs if buffers[p.read].offset is None and _pays(buffers, p)]
    fixed = [p for p in pairs if buffers[p.read].offset is not None]
    if len(buffers) > MANY and options.steps is not None and options.steps < MANY_STEPS:
        return known
    share = None if seconds is None else seconds / TRIED
    placing = options
    if options.steps is not None:
        placing = replace(options, steps=max(options.steps, options.steps * len(buffers) // MANY))
    with within(seconds):
        for limit in _limits(buffers, free, fixed, known):
            if seconds_left() == 0:
                break
            chosen = _needed(buffers, free, fixed, limit)
            if not chosen or limit >= best.arena_bytes:
                continue
            placement = _placed(buffers, chosen, fixed, replace(placing, time_limit_s=share))
            placing = options
            if placement.arena_bytes < best.arena_bytes:
                best = placement
    return best


def _pays(buffers: Sequence[Buffer], pair: OverlapPair) -> bool:
    """Return whether a slot saves bytes: it is shorter than both of its rows together."""
    return pair.far < buffers[pair.read].size_bytes


def _limits(
    buffers: Sequence[Buffer],
    free: Sequence[OverlapPair],
    fixed: Sequence[OverlapPair],
    known: Plan,
) -> Iterator[int]:
    """Yield the smallest limit in bytes that slots can meet, then some below the known arena."""
    low, high = 0, known.arena_bytes
    while low < high:
        middle = (low + high) // 2
        if _needed(buffers, free, fixed, middle) is None:
            low = middle + 1
        else:
            high = middle
    yield from (low + (known.arena_bytes - low) * k // TRIED for k in range(TRIED))


def _needed(
    buffers: Sequence[Buffer],
    free: Sequence[OverlapPair],
    fixed: Sequence[OverlapPair],
    limit: int,
) -> list[OverlapPair] | None:
    """Return the pairs to place as slots so that live bytes are at most ``limit``, else None."""
    at = {buffers[p.made].lower: p for p in free}
    chosen: list[OverlapPair] = []
    while True:
        live = _live(buffers, _slots(buffers, chosen), fixed)
        above = [step for step, load in enumerate(live) if load > limit]
        more = [at.pop(step) for step in above if step in at]
        if not more:
            return None if above else chosen
        chosen += more


def _slots(buffers: Sequence[Buffer], chosen: Sequence[OverlapPair]) -> _Slots:
    by_read = {p.read: p for p in chosen}
    overlapping = {p.made for p in chosen}
    begins, members = [0] * len(buffers), []
    for first in range(len(buffers)):
        if first in overlapping:
            continue
        chain = [first]
        while chain[-1] in by_read:
            step = by_read[chain[-1]]
            align = max(buffers[step.made].alignment, buffers[step.read].alignment)
            begins[step.made] = begins[step.read] - -(-step.far // align) * align
            chain.append(step.made)
        lowest = min(begins[i] for i in chain)
        for i in chain:
            begins[i] -= lowest
        members.append(tuple(chain))
    return _Slots(tuple(members), tuple(begins))


def _live(buffers: Sequence[Buffer], slots: _Slots, fixed: Sequence[OverlapPair]) -> list[int]:
    """Return the live bytes at each step, with ``slots`` and the overlaps ``fixed``."""
    live = live_bytes([slots.block(buffers, chain) for chain in slots.members])
    for pair in fixed:
        row = buffers[pair.made]
        saved = min(row.size_bytes, buffers[pair.read].size_bytes)
        live[row.lower] -= saved if pair.far == 0 else max(0, row.size_bytes - pair.far)
    return live


def live_bytes(buffers: Sequence[Buffer]) -> list[int]:
    """Return the live bytes at each step if no buffers overlap."""
    change = [0] * (max((b.upper for b in buffers), default=0) + 1)
    for buffer in buffers:
        change[buffer.lower] += buffer.size_bytes
        change[buffer.upper] -= buffer.size_bytes
    return list(accumulate(change))


def _placed(
    buffers: Sequence[Buffer],
    chosen: Sequence[OverlapPair],
    fixed: Sequence[OverlapPair],
    options: PlanOptions,
) -> Plan:
    """Plan the slots of ``chosen`` as blocks, and return the resulting plan of ``buffers``."""
    slots = _slots(buffers, chosen)
    beyond = {p.made: p for p in fixed}
    blocks = []
    for chain in slots.members:
        block = slots.block(buffers, chain)
        pair, begins = beyond.get(chain[0]), slots.begins[chain[0]]
        if pair is not None and (pair.far or begins == 0):
            moved = replace(pair, far=pair.far + begins) if pair.far else pair
            block = moved.named(block, buffers[pair.read])
        blocks.append(block)
    block_plan = plan(blocks, options=options)
    offsets = [0] * len(buffers)
    for chain, offset in zip(slots.members, block_plan.offsets, strict=True):
        for i in chain:
            offsets[i] = offset + slots.begins[i]
    return replace(block_plan, offsets=tuple(offsets))
