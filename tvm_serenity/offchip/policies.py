"""Policies: what is evicted, or accessed in slow memory; and sweeps over capacities.

=================  ============================================================  ==============
policy             what is evicted                                               one pass for
=================  ============================================================  ==============
``belady``         the block whose next use is farthest away (MIN, Belady 1966)   all capacities
``belady-writes``  the same, but a dirty block counts as two transfers            one capacity
``lru``            the least recently used block                                 all capacities
``fifo``           the block that was loaded first                               one capacity
``rr``             the block in the slot at a round-robin pointer                one capacity
=================  ============================================================  ==============

All policies know which blocks are dead, and drop them without a write at once. ``direct``
(:mod:`tvm_serenity.offchip.direct`) searches which accesses are in slow memory.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import inf
from types import ModuleType

from tvm_serenity.errors import InputError
from tvm_serenity.offchip import reference
from tvm_serenity.offchip.direct import direct_use
from tvm_serenity.offchip.reference import Action
from tvm_serenity.offchip.trace import Trace

native: ModuleType | None
try:
    native = import_module("tvm_serenity._offchip")
except ImportError:  # built without a C++ compiler
    native = None

Row = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Traffic:
    """Bytes moved while a trace runs in ``capacity_bytes``.

    ``created_bytes`` became resident without a transfer (written on-chip first). All resident bytes
    are evicted or dropped: ``loaded_bytes + created_bytes == evicted_bytes + dropped_bytes``.
    ``direct_read_bytes`` and ``direct_write_bytes``: in slow memory in place; ``read_bytes`` and
    ``write_bytes`` include them.
    """

    capacity_bytes: int
    read_bytes: int
    write_bytes: int
    compulsory_bytes: int
    streamed_bytes: int
    created_bytes: int
    evicted_bytes: int
    dropped_bytes: int
    direct_read_bytes: int = 0
    direct_write_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.write_bytes

    @property
    def capacity_traffic_bytes(self) -> int:
        """The traffic caused by the limited capacity."""
        return self.total_bytes - self.compulsory_bytes

    @property
    def loaded_bytes(self) -> int:
        """Bytes read into the on-chip memory, without streamed weights."""
        return self.read_bytes - self.streamed_bytes - self.direct_read_bytes


Policy = Callable[[Trace, Sequence[int], float], list[Row]]


def _one_by_one(name: str) -> Policy:
    def run(trace: Trace, capacities: Sequence[int], seconds: float) -> list[Row]:
        core, end = native or reference, time.monotonic() + seconds
        number = tuple(POLICIES).index(name)
        return [
            core.simulate(
                trace.block,
                trace.kind,
                trace.size,
                trace.kept,
                trace.group_end,
                trace.reserve,
                trace.room,
                capacity,
                number,
                max(0.0, end - time.monotonic()),
            )
            for capacity in capacities
        ]

    return run


def _one_pass(name: str) -> Policy:
    def run(trace: Trace, capacities: Sequence[int], seconds: float) -> list[Row]:
        if native is None or not trace.is_cache or trace.slot_bytes is None:
            return _one_by_one(name)(trace, capacities, seconds)
        slots = [capacity // trace.slot_bytes for capacity in capacities]
        distinct = sorted(set(slots))
        lru = name == "lru"
        arrays = trace.block, trace.kind, trace.size, trace.kept
        results = native.sweep(*arrays, distinct, lru, seconds)
        rows: dict[int, Row] = dict(zip(distinct, results, strict=True))
        return [rows[slot] for slot in slots]

    return run


POLICIES: Mapping[str, Policy] = {
    "belady": _one_pass("belady"),
    "belady-writes": _one_by_one("belady-writes"),
    "lru": _one_pass("lru"),
    "fifo": _one_by_one("fifo"),
    "rr": _one_by_one("rr"),
}


DIRECT = "direct"
NAMES = (*POLICIES, DIRECT)
"""All policies; ``direct`` evicts as well, but is no replacement policy of a cache."""


def _direct(trace: Trace, capacities: Sequence[int], seconds: float) -> list[Traffic]:
    """Return the traffic of ``direct``; no capacity is too small for it."""
    end, found = time.monotonic() + seconds, []
    for capacity in capacities:
        use = direct_use(trace, capacity, max(0.0, end - time.monotonic()))
        found.append(
            Traffic(
                capacity,
                use.read_bytes + trace.streamed_bytes,
                use.write_bytes,
                trace.compulsory_bytes,
                trace.streamed_bytes,
                use.bytes_of(Action.CREATE),
                use.bytes_of(Action.EVICT),
                use.bytes_of(Action.DROP),
                use.direct_read_bytes,
                use.direct_write_bytes,
            )
        )
    return found


def sweep(
    trace: Trace, capacities: Sequence[int], policy: str = "belady", seconds: float = inf
) -> list[Traffic]:
    """Return the traffic of ``trace`` at each of ``capacities`` (bytes), in their order.

    Raises :class:`InputError` if the policy is unknown, or a capacity is below one block or, in a
    scratchpad, below the need of one op (the message names it). Raises :class:`TimeoutError` after
    ``seconds``.
    """
    check_policy(policy)
    need = need_under(policy, trace.need_bytes)
    for capacity in capacities:
        check_capacity(need, capacity)
    if policy == DIRECT:
        return _direct(trace, capacities, seconds)
    rows = POLICIES[policy](trace, capacities, seconds)
    return [
        Traffic(
            capacity,
            row[0] + trace.streamed_bytes,
            row[1],
            trace.compulsory_bytes,
            trace.streamed_bytes,
            *row[2:],
        )
        for capacity, row in zip(capacities, rows, strict=True)
    ]


def simulate(
    trace: Trace, capacity_bytes: int, policy: str = "belady", seconds: float = inf
) -> Traffic:
    """Return the traffic of ``trace`` in ``capacity_bytes``; errors are those of :func:`sweep`."""
    return sweep(trace, [capacity_bytes], policy, seconds)[0]


def check_policy(policy: str) -> None:
    """Raise :class:`InputError` if there is no policy of this name."""
    if policy not in NAMES:
        raise InputError(f"unknown policy {policy!r}; choose one of {', '.join(NAMES)}")


def need_under(policy: str, needed: tuple[int, str]) -> tuple[int, str]:
    """Return what a policy needs where others need ``needed``: nothing under ``direct``."""
    return (1, "") if policy == DIRECT else needed


def check_capacity(needed: tuple[int, str], capacity: int) -> None:
    """Raise :class:`InputError` if a trace cannot run in ``capacity`` bytes.

    ``needed``: the least bytes, and the op that needs them ("": one block).
    """
    if capacity <= 0:
        raise InputError(f"capacity of {capacity} bytes: it must be 1 or more")
    need, op = needed
    if capacity >= need:
        return
    if not op:
        raise InputError(f"capacity of {capacity:,} bytes is less than one block of {need:,}")
    raise InputError(
        f"capacity of {capacity:,} bytes: op {op!r} needs {need:,} bytes on-chip at a time"
    )
