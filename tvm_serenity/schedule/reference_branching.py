"""Rule R11 in plain Python: the specification of the native branching, and its stand-in."""

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from tvm_serenity.schedule.reference_cuts import Cuts
from tvm_serenity.schedule.reference_moves import NEVER
from tvm_serenity.schedule.states import bits

WATCHED_OPS, MOST_WATCHED = 32, 128
"""A node is bounded at so many ops, the highest at the root; at more where they give no pair."""
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
class _Node:
    """What every order needs and where; the pair that splits it, and the first of its two ways."""

    bytes: int
    op: int
    pair: Pair = (-1, -1)
    ways: int = 0


@dataclass
class Branching:
    """Of two ops that are not comparable one runs first: best first over such choices.

    ``enough``: a bound above it is of no use.
    """

    core: Cuts
    enough: int
    bound: int = 0
    nodes: int = 0
    _ranked: list[int] = field(default_factory=list)
    _watched: list[int] = field(default_factory=list)
    _open: list[tuple[int, int, int, tuple[Pair, ...]]] = field(default_factory=list)
    _tree: list[_Node] = field(default_factory=list)

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
        self._ranked = [op for _, op in cuts[:MOST_WATCHED]]
        self._watch_more()
        needs = [(-cuts[0][0], cuts[0][1])]
        needs += [(self._cut(self.core, op).bytes, op) for op in self._watched]
        root = max(needs, key=lambda need: need[0])
        self.bound = min(root[0], self.enough)
        self._add(root, ())

    def _add(self, need: tuple[int, int], pairs: tuple[Pair, ...]) -> None:
        if need[0] < self.enough:
            heappush(self._open, (need[0], -len(pairs), -len(self._tree), pairs))
        self._tree.append(_Node(*need))

    def branches(self) -> list[list[int]]:
        """The proof of the bound: of each pair its two ways, and where they end an op.

        First the way in which the first op of the pair runs before the second. The cut at the op
        where a way ends is enough for the bound.
        """
        found: list[list[int]] = []
        rest = [0] if self._tree else []
        while rest:
            node = self._tree[rest.pop()]
            if not node.ways or node.bytes >= self.bound:
                found.append([node.op])
            else:
                found.append([*node.pair])
                rest += [node.ways + 1, node.ways]
        return found

    def _split(self) -> bool:
        """Replace the least node by its two ways; False where no pair is left."""
        _, _, number, pairs = self._open[0]
        node = self._tree[-number]
        core = self._with(pairs)
        watched, found = self._watch(core)
        if not found:
            return False

        def with_pair(pair: Pair, ops: int) -> tuple[int, int, int]:
            """What every order needs, at which op, and by how much cuts are higher."""
            child = self._with((*pairs, pair))
            needed, op, raised = node.bytes, node.op, 0
            for watch in watched[:ops]:
                if needed >= self.enough:
                    break
                cut = min(self._cut(child, watch.op).bytes, self.enough)
                raised += max(0, cut - watch.bytes)
                if cut > needed:
                    needed, op = cut, watch.op
            return needed, op, self.enough if needed >= self.enough else raised

        def score(pair: Pair, ops: int) -> tuple[int, int, int, Pair]:
            (a, _, more_a), (b, _, more_b) = (with_pair(way, ops) for way in (pair, pair[::-1]))
            return min(a, b), a + b, min(more_a, more_b), pair

        tried = min(len(found), TRIED_PAIRS)
        some = [found[i * len(found) // tried] for i in range(tried)]
        best = sorted((score(pair, FIRST_OPS) for pair in some), reverse=True)[:BEST_PAIRS]
        pair = max(score(pair, THEN_OPS) for *_, pair in best)[-1]
        ways = [with_pair(way, len(watched)) for way in (pair, pair[::-1])]
        heappop(self._open)
        self.nodes += 1
        node.pair, node.ways = pair, len(self._tree)
        for (bound, op, _), way in zip(ways, (pair, pair[::-1]), strict=True):
            self._add((bound, op), (*pairs, way))
        return True

    def _watch(self, core: Cuts) -> tuple[list[_Watch], list[Pair]]:
        """The cuts at the watched ops, highest first, and pairs to branch over.

        More ops are watched as long as there is none.
        """
        while True:
            ranked = [self._cut(core, op) for op in self._watched]
            watched = sorted(ranked, key=lambda watch: -watch.bytes)
            found = self._candidates(core, watched)
            if found or len(watched) == len(self._ranked):
                return watched, found
            self._watch_more()

    def _watch_more(self) -> None:
        before = len(self._watched)
        self._watched += self._ranked[before : before + WATCHED_OPS]

    def _candidates(self, core: Cuts, watched: Sequence[_Watch]) -> list[Pair]:
        """Pairs of which both ways raise a cut.

        Each op is in the least state before one watched op, or that op, and outside the largest
        least state before the other.
        """
        found: list[Pair] = []
        for far, y in enumerate(watched):
            for x in watched[:far]:
                if len(found) >= MOST_PAIRS:
                    break
                for a in bits((x.least | 1 << x.op) & ~y.largest):
                    for b in bits((y.least | 1 << y.op) & ~x.largest):
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
