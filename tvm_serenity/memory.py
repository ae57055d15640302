"""Live ranges, the live profile and the peak of a graph under an order.

Steps count the operators of the order from 0; a live range is half open. A graph input is live
from step 0 to its last reader, a graph output to the last step, anything else from its producer
to its last reader (SERENITY, section 3.1; Liberis and Lane, section 2.1). Views extend the range
of their source, an operator done in place continues the range of the storage it takes over, and
workspace is a range of one step. Where a result may lie over an operand that dies, the profile has
the bytes that this saves at most; how many it does is up to the placement.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph, is_order


@dataclass(frozen=True, slots=True)
class LiveRange:
    """Bytes that must stay in place from step ``start`` to before step ``stop``.

    ``tensors`` are all the tensors that live there: the first one, its views, and what operators
    done in place wrote over them. Workspace has no tensors but the op's index in ``workspace_of``.
    """

    name: str
    size_bytes: int
    start: int
    stop: int
    tensors: tuple[int, ...]
    workspace_of: int | None = None


@dataclass(frozen=True, slots=True)
class ProfileStep:
    """One step of the profile: the op that runs and the indices of the ranges live then."""

    op: int
    live_bytes: int
    live: tuple[int, ...]


@dataclass(frozen=True)
class Profile:
    """The live profile of an order: bytes at each step, and where the peak is."""

    ranges: tuple[LiveRange, ...]
    steps: tuple[ProfileStep, ...]
    peak_bytes: int
    peak_step: int | None

    @property
    def peak_ranges(self) -> tuple[LiveRange, ...]:
        """The ranges that make the peak, largest first."""
        if self.peak_step is None:
            return ()
        live = (self.ranges[i] for i in self.steps[self.peak_step].live)
        return tuple(sorted(live, key=lambda r: (-r.size_bytes, r.start, r.name)))


def live_ranges(graph: Graph, order: Sequence[int] | None = None) -> tuple[LiveRange, ...]:
    """Return what must be in memory when, under ``order`` (default: the given one).

    Raises :class:`InputError` where ``order`` is not a topological order of all ops.
    """
    order = range(len(graph.ops)) if order is None else order
    if not is_order(graph, order):
        raise InputError(f"{graph.name}: not a topological order of its {len(graph.ops)} ops")
    step_of = {op: step for step, op in enumerate(order)}
    members = _members(graph)
    stop = {root: _last_use(graph, step_of, tensors) for root, tensors in members.items()}
    kept = {graph.storage[t] for t in graph.outputs}
    home: dict[int, int] = {}
    chains: dict[int, list[int]] = {}
    for root in [t for t in members if graph.producer[t] < 0]:
        if stop[root] > 0:
            home[root] = root
            chains[root] = [root]
    for step, op in enumerate(order):
        for rank, tensor in enumerate(graph.ops[op].outputs):
            if tensor not in members:
                continue
            taken = _taken_over(graph, op, step + 1, stop, kept) if rank == 0 else None
            home[tensor] = home[taken] if taken is not None else tensor
            chains.setdefault(home[tensor], []).append(tensor)
    ranges = [
        LiveRange(
            graph.tensors[head].name,
            graph.tensors[head].size_bytes,
            step_of[graph.producer[head]] if graph.producer[head] >= 0 else 0,
            stop[chain[-1]],
            tuple(t for root in chain for t in members[root]),
        )
        for head, chain in chains.items()
    ]
    ranges += [
        LiveRange(
            f"{graph.ops[op].name} workspace", graph.ops[op].workspace_bytes, step, step + 1, (), op
        )
        for step, op in enumerate(order)
        if graph.ops[op].workspace_bytes and op not in graph.constant_ops
    ]
    return tuple(ranges)


def profile(graph: Graph, order: Sequence[int] | None = None) -> Profile:
    """Return the live profile of ``graph`` under ``order`` (default: the given one)."""
    order = tuple(range(len(graph.ops))) if order is None else tuple(order)
    ranges = live_ranges(graph, order)
    live: list[list[int]] = [[] for _ in order]
    for index, found in enumerate(ranges):
        for step in range(found.start, min(found.stop, len(order))):
            live[step].append(index)
    saved = _saved(graph, order, ranges)
    steps = tuple(
        ProfileStep(
            op, sum(ranges[i].size_bytes for i in live[step]) - saved[step], tuple(live[step])
        )
        for step, op in enumerate(order)
    )
    peak = max((s.live_bytes for s in steps), default=sum(r.size_bytes for r in ranges))
    where = next((i for i, s in enumerate(steps) if s.live_bytes == peak), None)
    return Profile(ranges, steps, peak, where)


def peak_bytes(graph: Graph, order: Sequence[int] | None = None) -> int:
    """Return the peak of ``graph`` under ``order`` in bytes, workspace included."""
    ranges = live_ranges(graph, order)
    change = [0] * (len(graph.ops) + 2)
    for found in ranges:
        change[found.start] += found.size_bytes
        change[found.stop] -= found.size_bytes
    order = range(len(graph.ops)) if order is None else order
    for step, bytes_saved in enumerate(_saved(graph, order, ranges)):
        change[step] -= bytes_saved
        change[step + 1] += bytes_saved
    live, peak = 0, 0
    for delta in change:
        live += delta
        peak = max(peak, live)
    return peak


def _saved(graph: Graph, order: Sequence[int], ranges: Sequence[LiveRange]) -> list[int]:
    """For each step, the bytes that a result saves at most as it lies over what dies there."""
    kept = set(graph.outputs)
    stop = {t: r.stop for r in ranges for t in r.tensors if kept.isdisjoint(r.tensors)}
    return [
        graph.ops[op].over_bytes if any(stop.get(t) == step + 1 for t in graph.ops[op].over) else 0
        for step, op in enumerate(order)
    ]


def _members(graph: Graph) -> dict[int, list[int]]:
    """For each storage in the profile, the tensors that live in it, ascending."""
    members: dict[int, list[int]] = {}
    for tensor, root in enumerate(graph.storage):
        if graph.in_profile[tensor]:
            members.setdefault(root, []).append(tensor)
    return members


def _last_use(graph: Graph, step_of: dict[int, int], tensors: list[int]) -> int:
    """The step after the last one at which a storage is needed; 0 where it never is."""
    outputs = set(graph.outputs)
    if any(t in outputs for t in tensors):
        return max(len(step_of), 1)
    made = [step_of[graph.producer[t]] for t in tensors if graph.producer[t] >= 0]
    used = [step_of[op] for t in tensors for op in graph.consumers[t]]
    return max([*made, *used], default=-1) + 1


def _taken_over(
    graph: Graph, op: int, after: int, stop: dict[int, int], kept: set[int]
) -> int | None:
    """The storage that output 0 of ``op`` takes over: the first listed that dies at ``after``."""
    roots = (graph.storage[tensor] for tensor in graph.ops[op].in_place)
    return next((r for r in roots if stop.get(r) == after and r not in kept), None)
