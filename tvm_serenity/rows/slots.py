"""Slots: an output row and the row it overlaps as one block, where the planner finds no placement.

A row that must begin some bytes below the row it overlaps leaves gaps that fit no other buffer. A
*slot* holds both rows: it is longer than one row by that distance, lives as long as both, and
shares no bytes with other buffers, so that the rest is plain placement. A slot costs a little at
every step of its life, and saves a row at the step where its two rows meet. A limit on the live
bytes decides which slots are needed: each step above it needs its own slot, and no slot undoes
another.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from tvm_serenity.plan import Buffer, Overlap, Plan, PlanOptions, plan
from tvm_serenity.search.deadline import seconds_left, within

TRIED = 3
"""Number of limits that are placed: the smallest that slots can meet, and some above it."""

MANY, MANY_STEPS = 500, 100_000
"""Above this many buffers, slots need at least that many steps; the first limit gets more."""


@dataclass(frozen=True, slots=True)
class OverlapPair:
    """An overlap: ``made`` begins ``far`` bytes or more below ``read`` (0: at the same offset)."""

    made: int
    read: int
    far: int

    def named(self, made: Buffer, read: Buffer) -> Buffer:
        """Return the buffer ``made`` with its overlap set."""
        return replace(
            made,
            may_overlap=read.name,
            overlap=Overlap.BELOW if self.far else Overlap.START,
            distance_bytes=self.far,
        )


@dataclass(frozen=True)
class _Slots:
    """Chains of buffers, each overlapping the one before, and where each begins in its slot."""

    members: tuple[tuple[int, ...], ...]
    begins: tuple[int, ...]

    def block(self, buffers: Sequence[Buffer], chain: Sequence[int]) -> Buffer:
        """Return the block of a chain, or its buffer if it is alone."""
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
    """Return a placement of ``buffers`` with slots, or ``known`` if none is smaller.

    ``pairs`` are the allowed overlaps, each buffer once on each side; ``made`` begins to live at
    the last step of ``read``. A buffer that overlaps one of a fixed offset may reach below it, and
    needs no slot. The result's buffers and bound are those of its blocks.
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
    """Return whether a slot is shorter than both of its rows together."""
    return pair.far < buffers[pair.read].size_bytes


def _limits(
    buffers: Sequence[Buffer],
    free: Sequence[OverlapPair],
    fixed: Sequence[OverlapPair],
    known: Plan,
) -> Iterator[int]:
    """Yield the smallest limit that slots can meet, and some between it and the known arena."""
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
    """Return the slots that keep live bytes within ``limit``; None if no set of slots does."""
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
    over = {p.read: p for p in chosen}
    made = {p.made for p in chosen}
    begins, members = [0] * len(buffers), []
    for first in range(len(buffers)):
        if first in made:
            continue
        chain = [first]
        while chain[-1] in over:
            step = over[chain[-1]]
            align = max(buffers[step.made].alignment, buffers[step.read].alignment)
            begins[step.made] = begins[step.read] - -(-step.far // align) * align
            chain.append(step.made)
        lowest = min(begins[i] for i in chain)
        for i in chain:
            begins[i] -= lowest
        members.append(tuple(chain))
    return _Slots(tuple(members), tuple(begins))


def _live(buffers: Sequence[Buffer], slots: _Slots, fixed: Sequence[OverlapPair]) -> list[int]:
    """Return the live bytes at each step."""
    live = live_bytes([slots.block(buffers, chain) for chain in slots.members])
    for pair in fixed:
        made = buffers[pair.made]
        saved = min(made.size_bytes, buffers[pair.read].size_bytes)
        live[made.lower] -= saved if pair.far == 0 else max(0, made.size_bytes - pair.far)
    return live


def live_bytes(buffers: Sequence[Buffer]) -> list[int]:
    """Return the live bytes at each step without overlaps, up to the end of the last buffer."""
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
    """Return the plan of ``buffers`` that follows from a plan of their blocks."""
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
