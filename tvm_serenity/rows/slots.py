"""Rows and what lies over them as blocks of their own, where no placement was found otherwise.

A row that must begin some bytes below the one it lies over leaves pieces that nothing else has the
size of. A *slot* holds both: it is as much longer than a row, lives as long as both, and lies apart
from all else, so what is left are blocks like any. One costs a little at every step at which it
lives, and saves a row at the one where its two rows meet. For a limit on what may be live, which
slots there must be follows: each step above it needs its own, and none can be undone by another.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from tvm_serenity.plan import Buffer, Overlap, Plan, PlanOptions, plan
from tvm_serenity.search.deadline import seconds_left, within

TRIED = 3
"""Limits that are placed: the least that slots keep to, and some between it and what is known."""

MANY, MANY_STEPS = 500, 100_000
"""Buffers of which slots are not worked out in fewer steps; more take more, for the least limit."""


@dataclass(frozen=True, slots=True)
class Lies:
    """Buffer ``made`` may lie over ``read``, ``far`` bytes or more below (0: exactly there)."""

    made: int
    read: int
    far: int

    def named(self, made: Buffer, read: Buffer) -> Buffer:
        """Return the buffer that is made, with what it may lie over."""
        return replace(
            made,
            may_overlap=read.name,
            overlap=Overlap.BELOW if self.far else Overlap.START,
            distance_bytes=self.far,
        )


@dataclass(frozen=True)
class _Slots:
    """Chains of buffers, each over the one before, with where each begins in its slot."""

    members: tuple[tuple[int, ...], ...]
    begins: tuple[int, ...]

    def block(self, buffers: Sequence[Buffer], chain: Sequence[int]) -> Buffer:
        """The block of a chain: of the first one's name, where it is alone."""
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
    buffers: Sequence[Buffer], pairs: Sequence[Lies], known: Plan, options: PlanOptions
) -> Plan:
    """Return a placement of ``buffers`` with slots, or ``known`` where none is found that is less.

    ``pairs`` is what may lie over what, a buffer once on each side; the one that is made begins to
    live at the last step of the one that is read. What is made over buffers of fixed places may
    reach them from below, and is no slot. The result's buffers and bound are those of its blocks.
    """
    best, seconds = known, options.time_limit_s
    free = [p for p in pairs if buffers[p.read].offset is None and _pays(buffers, p)]
    fixed = [p for p in pairs if buffers[p.read].offset is not None]
    if len(buffers) > MANY and options.steps is not None and options.steps < MANY_STEPS:
        return known
    share = None if seconds is None else seconds / TRIED
    how = options
    if options.steps is not None:
        how = replace(options, steps=max(options.steps, options.steps * len(buffers) // MANY))
    with within(seconds):
        for limit in _limits(buffers, free, fixed, known):
            if seconds_left() == 0:
                break
            chosen = _needed(buffers, free, fixed, limit)
            if not chosen or limit >= best.arena_bytes:
                continue
            found = _placed(buffers, chosen, fixed, replace(how, time_limit_s=share))
            how = options
            if found.arena_bytes < best.arena_bytes:
                best = found
    return best


def _pays(buffers: Sequence[Buffer], pair: Lies) -> bool:
    """Whether a slot is less than twice as long as a row of it."""
    return pair.far < buffers[pair.read].size_bytes


def _limits(
    buffers: Sequence[Buffer], free: Sequence[Lies], fixed: Sequence[Lies], known: Plan
) -> Iterator[int]:
    """The least limit that slots keep to, and some between it and the arena that is known."""
    low, high = 0, known.arena_bytes
    while low < high:
        middle = (low + high) // 2
        if _needed(buffers, free, fixed, middle) is None:
            low = middle + 1
        else:
            high = middle
    yield from (low + (known.arena_bytes - low) * k // TRIED for k in range(TRIED))


def _needed(
    buffers: Sequence[Buffer], free: Sequence[Lies], fixed: Sequence[Lies], limit: int
) -> list[Lies] | None:
    """The slots without which more than ``limit`` bytes are live at some step; None: with all."""
    at = {buffers[p.made].lower: p for p in free}
    chosen: list[Lies] = []
    while True:
        live = _live(buffers, _slots(buffers, chosen), fixed)
        above = [step for step, load in enumerate(live) if load > limit]
        more = [at.pop(step) for step in above if step in at]
        if not more:
            return None if above else chosen
        chosen += more


def _slots(buffers: Sequence[Buffer], chosen: Sequence[Lies]) -> _Slots:
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


def _live(buffers: Sequence[Buffer], slots: _Slots, fixed: Sequence[Lies]) -> list[int]:
    """Bytes that are live at each step."""
    live = live_bytes([slots.block(buffers, chain) for chain in slots.members])
    for pair in fixed:
        made = buffers[pair.made]
        saved = min(made.size_bytes, buffers[pair.read].size_bytes)
        live[made.lower] -= saved if pair.far == 0 else max(0, made.size_bytes - pair.far)
    return live


def live_bytes(buffers: Sequence[Buffer]) -> list[int]:
    """Bytes that are live at each step where nothing shares any, to the end of the last buffer."""
    change = [0] * (max((b.upper for b in buffers), default=0) + 1)
    for buffer in buffers:
        change[buffer.lower] += buffer.size_bytes
        change[buffer.upper] -= buffer.size_bytes
    return list(accumulate(change))


def _placed(
    buffers: Sequence[Buffer], chosen: Sequence[Lies], fixed: Sequence[Lies], options: PlanOptions
) -> Plan:
    """The plan of ``buffers`` that follows from one of blocks."""
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
    found = plan(blocks, options=options)
    offsets = [0] * len(buffers)
    for chain, offset in zip(slots.members, found.offsets, strict=True):
        for i in chain:
            offsets[i] = offset + slots.begins[i]
    return replace(found, offsets=tuple(offsets))
