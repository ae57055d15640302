"""Rule R11 in plain Python: the specification of the native branching, and its stand-in."""

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from tvm_serenity.schedule.reference_cuts import Cuts
from tvm_serenity.schedule.reference_moves import NEVER
from tvm_serenity.schedule.states import bits

WATCHED_OPS = 32
"""A node is bounded at so many ops: the highest at the root."""
FIRST_OPS, THEN_OPS = 6, 12
"""Of them, where all pairs are tried, and where the best of these."""
MOST_PAIRS, TRIED_PAIRS, BEST_PAIRS = 2000, 64, 4

Pair = tuple[int, int]
"""The first runs before the second."""


@dataclass
class _Watch:
    """What orders need at an op: bytes, the least state before it, and the largest such state."""

    op: int
    bytes: int
    least: int = 0
    largest: int = 0


@dataclass
class Branching:
    """Of two ops that are not comparable one runs first: best first over such choices.

    ``enough``: a bound above it is of no use.
    """

    core: Cuts
    enough: int
    bound: int = 0
    nodes: int = 0
    _watched: list[int] = field(default_factory=list)
    _open: list[tuple[int, int, int, tuple[Pair, ...]]] = field(default_factory=list)
    _number: "count[int]" = field(default_factory=count)

    def run(
        self, nodes: int, seconds: float, report: Callable[[int], None] | None
    ) -> tuple[int, int]:
        """Branch until there are so many nodes; the bound and the nodes so far."""
        until = time.monotonic() + seconds
        if not self._watched:
            self._start()
        while self._open:
            self.bound = max(self.bound, self._open[0][0])
            if self.nodes >= nodes or time.monotonic() > until or not self._split():
                return self.bound, self.nodes
            if report is not None:
                report(self.nodes)
        self.bound = self.enough
        return self.bound, self.nodes

    def _start(self) -> None:
        cuts = sorted((-self.core.root_cut(op)[0], op) for op in range(self.core.count))
        self._watched = [op for _, op in cuts[:WATCHED_OPS]]
        bounds = [-cuts[0][0], *(self._cut(self.core, op).bytes for op in self._watched)]
        self.bound = min(max(bounds), self.enough)
        self._add(max(bounds), ())

    def _add(self, bound: int, pairs: tuple[Pair, ...]) -> None:
        if bound < self.enough:
            heappush(self._open, (bound, -len(pairs), -next(self._number), pairs))

    def _split(self) -> bool:
        """Replace the least node by its two ways; False where no pair is left."""
        lowest, _, _, pairs = self._open[0]
        core = self._with(pairs)
        watched = [self._cut(core, op) for op in self._watched]
        watched.sort(key=lambda watch: -watch.bytes)

        def bound_with(pair: Pair, ops: int) -> int:
            child, bound = self._with((*pairs, pair)), lowest
            for watch in watched[:ops]:
                bound = max(bound, self._cut(child, watch.op).bytes)
            return min(bound, self.enough)

        def score(pair: Pair, ops: int) -> tuple[int, int, Pair]:
            ways = bound_with(pair, ops), bound_with(pair[::-1], ops)
            return min(ways), sum(ways), pair

        found = self._candidates(core, watched)
        tried = min(len(found), TRIED_PAIRS)
        some = [found[i * len(found) // tried] for i in range(tried)]
        best = sorted((score(pair, FIRST_OPS) for pair in some), reverse=True)[:BEST_PAIRS]
        if not best:
            return False
        pair = max(score(pair, THEN_OPS) for _, _, pair in best)[2]
        bounds = [bound_with(way, WATCHED_OPS) for way in (pair, pair[::-1])]
        heappop(self._open)
        self.nodes += 1
        for bound, way in zip(bounds, (pair, pair[::-1]), strict=True):
            self._add(bound, (*pairs, way))
        return True

    def _candidates(self, core: Cuts, watched: Sequence[_Watch]) -> list[Pair]:
        """Pairs of which both ways raise a cut.

        Each op is in the least state before one watched op, and outside the largest least state
        before the other.
        """
        found: list[Pair] = []
        for far, y in enumerate(watched):
            for x in watched[:far]:
                if len(found) >= MOST_PAIRS:
                    break
                for a in bits(x.least & ~y.largest):
                    for b in bits(y.least & ~x.largest):
                        if not (core.ancestors[a] >> b | core.ancestors[b] >> a) & 1:
                            found.append((min(a, b), max(a, b)))
        return sorted(set(found))

    def _with(self, pairs: Iterable[Pair]) -> Cuts:
        """The instance with these precedences too."""
        core = copy.copy(self.core)
        extra: dict[int, list[int]] = {}
        for first, second in pairs:
            extra.setdefault(second, []).append(first)
        core.predecessors = [
            (*before, *extra.get(op, ())) for op, before in enumerate(core.predecessors)
        ]
        known: dict[int, int] = {}

        def ancestors(op: int) -> int:
            if op not in known:
                known[op] = 0
                for other in core.predecessors[op]:
                    known[op] |= ancestors(other) | 1 << other
            return known[op]

        core.ancestors = [ancestors(op) for op in range(core.count)]
        return core

    def _cut(self, core: Cuts, op: int) -> _Watch:
        """What orders need at an op; what it makes counts as made already."""
        best = _Watch(op, NEVER)
        for inside, outside, credit in core.states_before(op):
            live, least, largest = core.least_live(inside, outside, op)
            needed = live + core.workspace[op] - credit
            if needed < best.bytes:
                best = _Watch(op, needed, least, largest)
        return best
