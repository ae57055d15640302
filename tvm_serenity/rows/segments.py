"""The segment program: a dynamic program that chooses the cuts at which streaming stops.

A cut is a point between two layers at which only one feature is live in fast memory. Between two
cuts, a segment of the network is streamed: the bands of the last feature are requested one by one,
each op runs right before the first op that needs its result, and dead bands are dropped. The cost
of a segment is its peak in bytes, with the first feature complete at the start and the last
feature complete at the end. The program minimises the largest cost of the segments between the
chosen cuts. The resulting order streams through large features, and stops at cuts where the
complete feature is small. Ops that write to slow memory only run as soon as they can: they take no
memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm_serenity.graph import Graph
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.split import SOURCE, Banded


def segment_order(banded: Banded, enough_bytes: int = 0) -> tuple[int, ...]:
    """Return the order of the ops of ``banded.graph`` that streams between the best cuts.

    A peak below ``enough_bytes`` is as good as that.
    """
    cuts = cuts_of(banded.network)
    groups = _groups(banded, cuts)
    program = _Program(banded.graph)
    best: list[tuple[int, tuple[int, ...]]] = [(enough_bytes, ())]
    for end in range(1, len(groups) + 1):
        cheapest: tuple[int, tuple[int, ...]] | None = None
        for start in range(end - 1, -1, -1):
            before, path = best[start]
            if cheapest is not None and before >= cheapest[0]:
                continue
            limit = None if cheapest is None else cheapest[0]
            ops = [op for group in groups[start:end] for op in group]
            segment = program.run(ops, limit)
            if segment is None:
                continue
            cost = max(before, segment.peak)
            if cheapest is None or cost < cheapest[0]:
                cheapest = (cost, (*path, *segment.order))
        assert cheapest is not None  # the first segment tried has no limit
        best.append(cheapest)
    return best[-1][1]


def cuts_of(network: Network) -> list[int]:
    """Return the layers after which at most one feature is live, and the last layer.

    Features in slow memory do not count.
    """
    fast = {f for f, known in enumerate(network.features) if not known.slow}
    last = {f: max(readers) for f, readers in network.readers.items() if readers and f in fast}
    last |= dict.fromkeys(fast & set(network.outputs), len(network.layers))
    alive = {f for f in network.inputs if f in last}
    cuts = []
    for index, layer in enumerate(network.layers):
        alive |= {f for f in layer.outputs if f in last}
        alive = {f for f in alive if last[f] > index}
        if len(alive) <= 1 or index == len(network.layers) - 1:
            cuts.append(index)
    return cuts


def _groups(banded: Banded, cuts: Sequence[int]) -> list[list[int]]:
    """Return one group of ops per cut: the ops of the layers up to it.

    Ops that store arriving input rows are in the first group.
    """
    group_of = {}
    group = 0
    for layer in range(len(banded.network.layers)):
        group_of[layer] = group
        group += layer in cuts
    groups: list[list[int]] = [[] for _ in cuts]
    for op, call in enumerate(banded.calls):
        groups[0 if call.layer == SOURCE else group_of[call.layer]].append(op)
    return groups


@dataclass(frozen=True)
class _Segment:
    order: tuple[int, ...]
    peak: int


class _Program:
    """Streams sets of ops and measures their peaks; a view shares the storage of its source."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        sizes = [t.size_bytes if graph.in_profile[i] else 0 for i, t in enumerate(graph.tensors)]
        self.sizes = [sizes[root] for root in graph.storage]
        readers: dict[int, set[int]] = {}
        for op, known in enumerate(graph.ops):
            for t in known.inputs:
                readers.setdefault(graph.storage[t], set()).add(op)
        self.readers = readers
        self.kept = {graph.storage[t] for t in graph.outputs}
        self.reads = [tuple({graph.storage[t] for t in op.inputs}) for op in graph.ops]
        self.makes = [
            tuple(t for t in op.outputs if graph.storage[t] == t and op.view_of is None)
            for op in graph.ops
        ]

    def run(self, ops: Sequence[int], limit: int | None) -> _Segment | None:
        """Return the streamed order of ``ops`` and its peak; None if the peak reaches ``limit``."""
        inside = set(ops)
        waiting: dict[int, int] = {}
        live = 0
        for storage in {t for op in ops for t in self.reads[op]}:
            waiting[storage] = len(self.readers[storage] & inside)
        produced = {t for op in ops for t in self.makes[op]}
        live = sum(self.sizes[t] for t in waiting if t not in produced)
        peak = live
        order: list[int] = []
        for op in self._on_demand(ops, inside):
            need = live + sum(self.sizes[t] for t in self.makes[op])
            peak = max(peak, need + self.graph.ops[op].workspace_bytes)
            if limit is not None and peak >= limit:
                return None
            live = need - sum(self.sizes[t] for t in self.makes[op] if not self._used(t))
            for t in self.reads[op]:
                waiting[t] -= 1
                if waiting[t] == 0 and not self._leaves(t, inside):
                    live -= self.sizes[t]
            order.append(op)
        return _Segment(tuple(order), peak)

    def _used(self, storage: int) -> bool:
        return storage in self.kept or bool(self.readers.get(storage))

    def _leaves(self, storage: int, inside: set[int]) -> bool:
        """Return whether ``storage`` is an output or is read by ops outside of the segment."""
        return storage in self.kept or not self.readers[storage] <= inside

    @cached_property
    def _before(self) -> tuple[tuple[int, ...], ...]:
        """The predecessors of each op; first the op that began the storage that the op writes to.

        This makes bands that share a storage (sums, outputs) run one after the other.
        """
        predecessors = []
        for op, known in enumerate(self.graph.ops):
            before = self.graph.predecessors[op]
            first = -1 if known.view_of is None else self.graph.producer[known.view_of]
            predecessors.append(tuple(sorted(before, key=lambda p: (p != first, p))))
        return tuple(predecessors)

    def _on_demand(self, ops: Sequence[int], inside: set[int]) -> Iterator[int]:
        """Yield each op right before the first op that needs it.

        Ops without readers in the segment run in the order of ``ops``. Ops that make nothing in
        fast memory run as soon as their inputs are there.
        """
        before = self._before
        used = {p for op in ops for p in before[op] if p in inside}
        left = {op: sum(p in inside for p in before[op]) for op in ops if op in self._free}
        done: set[int] = set()

        def run(op: int) -> Iterator[int]:
            """Yield an op, and the ops that make nothing in fast memory and can run now."""
            can_run = [op]
            while can_run:
                now = can_run.pop()
                done.add(now)
                yield now
                for later in self.graph.successors[now]:
                    if later in left:
                        left[later] -= 1
                        if not left[later] and later not in done:
                            can_run.append(later)

        for end in ops:
            stack = [(end, iter(before[end]))] if end not in used and end not in done else []
            while stack:
                op, waiting_for = stack[-1]
                for p in waiting_for:
                    if p in inside and p not in done:
                        stack.append((p, iter(before[p])))
                        break
                else:
                    stack.pop()
                    if op not in done:
                        yield from run(op)

    @cached_property
    def _free(self) -> frozenset[int]:
        """The ops that make results, none of which takes fast memory."""
        counted, ops = self.graph.in_profile, enumerate(self.graph.ops)
        made = ((index, op.outputs) for index, op in ops if op.outputs)
        return frozenset(index for index, ts in made if not any(counted[t] for t in ts))
