"""Rule R11 in plain Python: the specification of the native branching, and its fallback."""

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from tvm_serenity.schedule.reference_cuts import Cuts
from tvm_serenity.schedule.reference_moves import NEVER
from tvm_serenity.schedule.states import bits

WATCHED_OPS, MOST_WATCHED = 32, 128
"""Number of ops at which a node has cuts, the highest needs first; up to the second number if the
first gives no pair."""
FIRST_OPS, THEN_OPS = 6, 12
"""Number of these ops that score all pairs, and number that score the best pairs again."""
MOST_PAIRS, TRIED_PAIRS, BEST_PAIRS = 2000, 64, 4

Pair = tuple[int, int]
"""Two ops; the first runs before the second."""


@dataclass
class _Watch:
    """The least need at an op over all orders, and the extreme states that attain it."""

    op: int
    bytes: int
    least: int = 0
    largest: int = 0


@dataclass
class _Node:
    """A node of the branching: a bound on all its orders, and the pair of ops that splits it.

    ``children`` is the index of the first of its two children, 0 if it has none.
    """

    bytes: int
    op: int
    pair: Pair = (-1, -1)
    children: int = 0


@dataclass
class Branching:
    """A best-first branch and bound over which of two incomparable ops runs first.

    ``enough``: the bound at which branching ends.
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
        """Branch until there are ``nodes`` nodes; return the bound and the nodes so far."""
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
        """Return the proof of the bound, a tree in depth-first order (``least_of_branches``).

        A pair of ops is a node: first comes the subtree in which its first op runs first. A single
        op is a leaf: the cut at this op gives the bound.
        """
        proof: list[list[int]] = []
        rest = [0] if self._tree else []
        while rest:
            node = self._tree[rest.pop()]
            if not node.children or node.bytes >= self.bound:
                proof.append([node.op])
            else:
                proof.append([*node.pair])
                rest += [node.children + 1, node.children]
        return proof

    def _split(self) -> bool:
        """Split the node with the least bound into two; return False if it has no pair to split."""
        _, _, number, pairs = self._open[0]
        node = self._tree[-number]
        core = self._with(pairs)
        watched, candidates = self._watch(core)
        if not candidates:
            return False

        def with_pair(pair: Pair, ops: int) -> tuple[int, int, int]:
            """Return the bound with ``pair`` ordered, its op, and the increase of the cuts."""
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

        tried = min(len(candidates), TRIED_PAIRS)
        some = [candidates[i * len(candidates) // tried] for i in range(tried)]
        best = sorted((score(pair, FIRST_OPS) for pair in some), reverse=True)[:BEST_PAIRS]
        pair = max(score(pair, THEN_OPS) for *_, pair in best)[-1]
        children = [with_pair(way, len(watched)) for way in (pair, pair[::-1])]
        heappop(self._open)
        self.nodes += 1
        node.pair, node.children = pair, len(self._tree)
        for (bound, op, _), way in zip(children, (pair, pair[::-1]), strict=True):
            self._add((bound, op), (*pairs, way))
        return True

    def _watch(self, core: Cuts) -> tuple[list[_Watch], list[Pair]]:
        """Return the cuts at the watched ops, highest first, and the pairs to branch over.

        If there is no pair, more ops are watched.
        """
        while True:
            ranked = [self._cut(core, op) for op in self._watched]
            watched = sorted(ranked, key=lambda watch: -watch.bytes)
            pairs = self._candidates(core, watched)
            if pairs or len(watched) == len(self._ranked):
                return watched, pairs
            self._watch_more()

    def _watch_more(self) -> None:
        before = len(self._watched)
        self._watched += self._ranked[before : before + WATCHED_OPS]

    def _candidates(self, core: Cuts, watched: Sequence[_Watch]) -> list[Pair]:
        """Return the pairs of ops for which both orders raise a cut.

        Each op of a pair belongs to one watched op: it is that op or is in its smallest least
        state, and it is outside of the largest least state before the other watched op.
        """
        pairs: list[Pair] = []
        for far, y in enumerate(watched):
            for x in watched[:far]:
                if len(pairs) >= MOST_PAIRS:
                    break
                for a in bits((x.least | 1 << x.op) & ~y.largest):
                    for b in bits((y.least | 1 << y.op) & ~x.largest):
                        if not (core.ancestors[a] >> b | core.ancestors[b] >> a) & 1:
                            pairs.append((min(a, b), max(a, b)))
        return sorted(set(pairs))

    def _with(self, pairs: Iterable[Pair]) -> Cuts:
        """Return the instance with the precedences of ``pairs`` added."""
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
        """Return the cut at ``op``: its least need over all orders, with its outputs live."""
        best = _Watch(op, NEVER)
        for inside, outside, credit in core.states_before(op):
            live, least, largest = core.least_live(inside, outside, op)
            needed = live + core.workspace[op] - credit
            if needed < best.bytes:
                best = _Watch(op, needed, least, largest)
        return best
