"""The policy ``direct``: each use of a tensor is in fast memory, or in slow memory in place.

An operator may read and write any tensor where it is, so no capacity is too small. A search over
all uses decides: where a tensor is accessed, and whether it stays in fast memory until its next
use. It goes through the operators in their order and keeps one way, the cheapest, to each set of
tensors that stay. It is exact unless there are more than ``STATES`` sets; then it keeps the best.

A set that stays is as good as any other set with fewer bytes moved so far. Bytes that must be read
again count as soon as a tensor leaves, so costs of different sets compare.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf

from tvm_serenity.errors import InputError
from tvm_serenity.offchip.accesses import READ, WRITE
from tvm_serenity.offchip.model import Memory
from tvm_serenity.offchip.reference import Action, Decision
from tvm_serenity.offchip.trace import Trace

STATES = 64, 2_000
"""Sets of tensors that are kept at an operator: by a first search, and by one that improves it."""


class _Came(Enum):
    """How an operator finds a tensor."""

    KEPT = "kept"
    LOAD = "load"
    CREATE = "create"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class _Use:
    """A tensor (a block of a trace) in an operator, with what its accesses in slow memory cost.

    ``needs``: its bytes are read. ``read_bytes`` and ``write_bytes``: in slow memory.
    ``wanted``: its content is read later; ``returned``: its content is an output, and not accessed
    any more.
    """

    block: int
    size: int
    room: int
    needs: bool
    written: bool
    read_bytes: int
    write_bytes: int
    wanted: bool
    returned: bool


@dataclass(frozen=True, slots=True)
class _Step:
    """One decision, and the one before it; block -1: the workspace is in slow memory."""

    before: "_Step | None"
    group: int
    block: int
    came: _Came
    stays: bool = False
    stored: bool = False
    wanted: bool = False


@dataclass(frozen=True, slots=True)
class _State:
    """The cheapest way to a set of tensors in fast memory: its cost, their bytes, its decisions."""

    cost: int
    used: int
    last: _Step | None


@dataclass(frozen=True)
class DirectUse:
    """The decisions for a trace, whose blocks have ``sizes``.

    ``proved``: no others move or access fewer bytes of slow memory in this order, by size.
    ``direct_read_bytes`` and ``direct_write_bytes`` are accessed in slow memory in place.
    """

    decisions: tuple[Decision, ...]
    sizes: Sequence[int]
    direct_read_bytes: int
    direct_write_bytes: int
    proved: bool

    def bytes_of(self, action: Action) -> int:
        """Return the bytes of the tensors that an action happens to."""
        return sum(self.sizes[one.block] for one in self.decisions if one.action is action)

    @property
    def read_bytes(self) -> int:
        """Bytes that are loaded, or read in slow memory."""
        return self.bytes_of(Action.LOAD) + self.direct_read_bytes

    @property
    def write_bytes(self) -> int:
        """Bytes that are stored, or written in slow memory."""
        return self.bytes_of(Action.STORE) + self.direct_write_bytes


def direct_use(
    trace: Trace, capacity: int, seconds: float = inf, limits: Sequence[int] | None = None
) -> DirectUse:
    """Return where each use is, so that the fewest bytes move or are accessed in slow memory.

    ``limits``: the most sets of tensors that each search keeps at an operator (``STATES``).

    Raises :class:`InputError` for a trace of a cache or of blocks, and :class:`TimeoutError` after
    ``seconds``.
    """
    check_unsplit(trace.memory, trace.slot_bytes)
    search = _Search(trace, capacity, time.monotonic() + seconds)
    found, proved = None, False
    for states in limits or STATES:
        better, proved = search.run(states, found.cost if found is not None else inf)
        found = better or found
        proved |= found is not None and found.cost == search.least
        if proved:
            break
    assert found is not None
    return _result(search, found, proved)


def check_unsplit(memory: Memory, block_bytes: int | None) -> None:
    """Raise :class:`InputError` unless tensors are unsplit in a scratchpad."""
    if memory is not Memory.SCRATCHPAD or block_bytes is not None:
        raise InputError(
            "policy 'direct' is for unsplit tensors in a scratchpad; set the block to tensor and "
            "the memory to scratchpad"
        )


class _Search:
    """The uses of each operator of a trace, and the search over them."""

    def __init__(self, trace: Trace, capacity: int, deadline: float) -> None:
        self.capacity, self.deadline = capacity, deadline
        self.uses, self.reserve = _uses(trace), trace.reserve.tolist()
        self.work = self.reserve if trace.workspace is None else trace.workspace.tolist()
        self.size = trace.size.tolist()
        first = {use.block: use.needs for uses in self.uses[::-1] for use in uses}
        self.given = sum(self.size[block] for block, needs in first.items() if needs)
        self.least = trace.compulsory_bytes - trace.streamed_bytes

    def run(self, states: int, below: float) -> tuple[_State | None, bool]:
        """Return the best way that costs less than ``below``, and whether no set was left out."""
        kept: dict[tuple[int, int], _State] = {(0, 0): _State(self.given, 0, None)}
        exact = True
        for group, uses in enumerate(self.uses):
            if time.monotonic() > self.deadline:
                raise TimeoutError("the search for direct accesses took more than its limit")
            held = dict(self._workspace(group, kept, below))
            for use in uses:
                held = self._used(group, use, held, below)
            kept = {}
            for (clean, dirty, _), state in held.items():
                known = kept.get((clean, dirty))
                if known is None or state.cost < known.cost:
                    kept[clean, dirty] = state
            if len(kept) > states:
                exact = False
                best = sorted(kept.items(), key=lambda item: (item[1].cost, item[1].used))
                kept = dict(best[:states])
        ends = list(kept.values())
        return (min(ends, key=lambda state: state.cost) if ends else None), exact

    def _workspace(
        self, group: int, kept: dict[tuple[int, int], _State], below: float
    ) -> Iterator[tuple[tuple[int, int, int], _State]]:
        """Yield the states with the workspace of an operator in fast, or else in slow memory."""
        needed = self.reserve[group]
        for (clean, dirty), state in kept.items():
            if state.used + needed <= self.capacity:
                yield (clean, dirty, needed), state
            cost = state.cost + 2 * self.work[group]
            if needed and cost < below:
                step = _Step(state.last, group, -1, _Came.DIRECT)
                yield (clean, dirty, 0), _State(cost, state.used, step)

    def _used(
        self, group: int, use: _Use, held: dict[tuple[int, int, int], _State], below: float
    ) -> dict[tuple[int, int, int], _State]:
        """Return the states after one use, the cheapest of each set.

        A state is the tensors that stay, unchanged and changed since they were loaded, and the
        bytes of fast memory that the operator takes beside them.
        """
        made: dict[tuple[int, int, int], _State] = {}
        bit, size, room = 1 << use.block, use.size, use.room
        again = size * use.wanted
        beside = use.read_bytes - size * use.needs + use.write_bytes + again

        def reach(key: tuple[int, int, int], cost: int, used: int, step: _Step) -> None:
            known = made.get(key)
            if cost < below and (known is None or cost < known.cost):
                made[key] = _State(cost, used, step)

        for (clean, dirty, extra), state in held.items():
            here = bool((clean | dirty) & bit)
            came = _Came.KEPT if here else _Came.LOAD if use.needs else _Came.CREATE
            used = state.used - room * here  # by others
            changed = use.written or bool(dirty & bit)
            others = clean & ~bit, dirty & ~bit
            if not here:
                step = _Step(state.last, group, use.block, _Came.DIRECT, wanted=use.wanted)
                reach((*others, extra), state.cost + beside, used, step)
            if used + extra + room > self.capacity:
                continue
            if use.wanted:
                stays = (others[0] | bit * (not changed), others[1] | bit * changed, extra)
                step = _Step(state.last, group, use.block, came, stays=True)
                reach(stays, state.cost, used + room, step)
            stored = changed and (use.wanted or use.returned)
            step = _Step(state.last, group, use.block, came, stored=stored, wanted=use.wanted)
            reach((*others, extra + room), state.cost + size * stored + again, used, step)
        return made


def _uses(trace: Trace) -> list[list[_Use]]:
    """Return the uses of each group of a trace, each tensor once."""
    blocks, kinds = trace.block.tolist(), trace.kind.tolist()
    passes = [1] * len(blocks) if trace.passes is None else trace.passes.tolist()
    sizes, rooms, kept = trace.size.tolist(), trace.room.tolist(), trace.kept.tolist()
    later: dict[int, int] = {}  # the kind of the next access
    found, end = [], len(blocks)
    starts = [0, *trace.group_end.tolist()[:-1]] if len(trace.group_end) else []
    for start in reversed(starts):
        uses = []
        for block in dict.fromkeys(blocks[start:end]):
            mine = [i for i in range(start, end) if blocks[i] == block]
            size, after = sizes[block], later.get(block)
            reads = sum(passes[i] for i in mine if kinds[i] != WRITE)
            writes = sum(passes[i] for i in mine if kinds[i] != READ)
            uses.append(
                _Use(
                    block,
                    size,
                    rooms[block],
                    needs=kinds[mine[0]] != WRITE,
                    written=writes > 0,
                    read_bytes=size * reads,
                    write_bytes=size * writes,
                    wanted=after is not None and after != WRITE,
                    returned=after is None and bool(kept[block]),
                )
            )
        for i in range(end - 1, start - 1, -1):
            later[blocks[i]] = kinds[i]
        found.append(uses)
        end = start
    return found[::-1]


def _result(search: _Search, found: _State, proved: bool) -> DirectUse:
    """Return the decisions of a way through the operators, in order of time, with their bytes."""
    steps, step = list[_Step](), found.last
    while step is not None:
        steps.append(step)
        step = step.before
    steps.reverse()
    by_group: dict[int, list[_Step]] = {}
    for one in steps:
        by_group.setdefault(one.group, []).append(one)
    made, leaving = list[Decision](), list[_Step]()
    accessed = [0, 0]
    for group, uses in enumerate(search.uses):
        mine = by_group.get(group, [])
        for one in leaving:
            made += [Decision(group, Action.STORE, one.block)] * one.stored
            made.append(Decision(group, Action.EVICT, one.block))
        leaving = [o for o in mine if o.wanted and not o.stays and o.came is not _Came.DIRECT]
        known = {use.block: use for use in uses}
        for one in mine:
            if one.came is _Came.DIRECT:
                made.append(Decision(group, Action.DIRECT, one.block))
                work = search.work[group] * (one.block < 0)
                accessed[0] += work or known[one.block].read_bytes
                accessed[1] += work or known[one.block].write_bytes
            elif one.came is not _Came.KEPT:
                how = Action.LOAD if one.came is _Came.LOAD else Action.CREATE
                made.append(Decision(group, how, one.block))
        for one in mine:
            if one.came is not _Came.DIRECT and not one.stays and not one.wanted:
                made += [Decision(group, Action.STORE, one.block)] * one.stored
                made.append(Decision(group, Action.DROP, one.block))
    return DirectUse(tuple(made), search.size, accessed[0], accessed[1], proved)
