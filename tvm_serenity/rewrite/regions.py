"""Independent parts of a net, which can be optimised separately because no rewrite crosses them.

An op that every other op must run before or after (``schedule.partition``) fixes the set of
finished ops around it, so the live bytes at that point are the same in every order. A rewrite that
takes ops from both sides would break that, so a cut is made only where no possible match crosses.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain

from tvm_serenity.graph import Role, Tensor
from tvm_serenity.rewrite.net import Net, Node
from tvm_serenity.rewrite.reach import of_readers
from tvm_serenity.rewrite.rule import Span
from tvm_serenity.rewrite.rules import RULES
from tvm_serenity.schedule.partition import waists
from tvm_serenity.schedule.problem import problem_of


@dataclass(frozen=True)
class NetRegion:
    """Consecutive nodes ``start`` to ``end - 1`` of a net, which no possible match leaves.

    ``net`` consists of these nodes, with all values of the original net. ``held_bytes`` of values
    that the region does not touch are live across it.
    """

    start: int
    end: int
    net: Net
    held_bytes: int

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The values that its nodes touch, by number in the original net, ascending."""
        touched = set(self.net.producer).union(*(node.inputs for node in self.net.nodes))
        return tuple(sorted(touched))

    def alone(self) -> Net:
        """Return the region with ``values`` alone, and one more that is live throughout."""
        number, extra = {v: i for i, v in enumerate(self.values)}, len(self.values)
        kept = Tensor("held", self.held_bytes)
        return replace(
            self.net,
            values=(*map(self.net.values.__getitem__, self.values), kept),
            nodes=tuple(_renumbered(node, number.__getitem__) for node in self.net.nodes),
            inputs=(*map(number.__getitem__, self.net.inputs), extra),
            outputs=(*map(number.__getitem__, self.net.outputs), extra),
        )


def regions(net: Net, matched: frozenset[str] = frozenset()) -> Iterator[NetRegion]:
    """Yield consecutive parts of ``net``, in its order.

    No rewrite of the nodes called ``matched``, and of their readers, leaves its part.
    """
    ends = _cuts(net, matched)
    starts = [0, *ends][: len(ends)]
    kept = _Kept(net)
    held = kept.across(starts, ends)
    for start, end, crossing in zip(starts, ends, held, strict=True):
        nodes = net.nodes[start:end]
        produced = [v for n in nodes for v in n.outputs]
        read = dict.fromkeys(v for n in nodes for v in n.inputs)
        inside, touched = set(produced), {kept.storage[v] for v in (*produced, *read)}
        inputs = [v for v in read if v not in inside and not _constant(net, v)]
        outputs = sorted(v for v in (*inputs, *produced) if kept.until[kept.storage[v]] >= end)
        crossing -= sum(kept.bytes_across(root, start, end) for root in touched)
        part = replace(net, nodes=nodes, inputs=tuple(inputs), outputs=tuple(outputs))
        yield NetRegion(start, end, part, crossing)


class Stitched:
    """A net whose regions are replaced by their rewritten forms, one after the other."""

    def __init__(self, net: Net) -> None:
        self._net, self._values = net, list(net.values)
        self._nodes: dict[int, list[Node]] = {}

    def put(self, region: NetRegion, changed: Net) -> None:
        """Replace a region; new values of its nodes get the next numbers."""
        # the first extra value stands for the held bytes
        extra = changed.values[len(region.values) + 1 :]
        first = len(self._values)
        number = (*region.values, -1, *range(first, first + len(extra)))
        self._values += extra
        self._nodes[region.start] = [_renumbered(n, number.__getitem__) for n in changed.nodes]

    def net(self, parts: Iterable[NetRegion]) -> Net:
        """Return the net of all its regions, replaced or not."""
        nodes = chain.from_iterable(self._nodes.get(r.start, r.net.nodes) for r in parts)
        return replace(self._net, values=tuple(self._values), nodes=tuple(nodes))


class _Kept:
    """How long the storages of a net are live: ``until`` is the last op that reads each."""

    def __init__(self, net: Net) -> None:
        self.net, self.storage = net, net.graph.storage
        self.until = [-1] * len(net.values)
        for i, node in enumerate(net.nodes):
            for v in node.inputs:
                self.until[self.storage[v]] = i
        for v in net.outputs:
            self.until[self.storage[v]] = len(net.nodes)

    def bytes_across(self, root: int, start: int, end: int) -> int:
        """Return the bytes of a storage that is live from before ``start`` to ``end``, else 0."""
        producer = self.net.producer.get(root, -1)
        kept = self.net.graph.in_profile[root] and producer < start and self.until[root] >= end
        return self.net.values[root].size_bytes if kept else 0

    def across(self, starts: Sequence[int], ends: Sequence[int]) -> list[int]:
        """Return, for each part, the bytes of all storages that are live across it."""
        change = [0] * (len(ends) + 1)
        for root, until in enumerate(self.until):
            if until >= 0 and self.net.graph.in_profile[root]:
                first = bisect_right(starts, self.net.producer.get(root, -1))
                last = max(first, bisect_right(ends, until))
                change[first] += self.net.values[root].size_bytes
                change[last] -= self.net.values[root].size_bytes
        return list(accumulate(change[:-1]))


def _cuts(net: Net, matched: frozenset[str]) -> list[int]:
    problem = problem_of(net.graph)
    change = [0] * (len(net.nodes) + 1)
    for low, high in _reaches(net, matched):
        if (low := max(low, 0)) < high:  # positions low to before high are crossed
            change[low] += 1
            change[high] -= 1
    crossed = list(accumulate(change))
    ends = [problem.ops[w] + 1 for w in waists(problem) if not crossed[problem.ops[w]]]
    if not ends or ends[-1] != len(net.nodes):
        ends.append(len(net.nodes))
    return ends


def _reaches(net: Net, matched: frozenset[str]) -> Iterator[Span]:
    """Yield the nodes that chosen rules may change or move, and ``matched`` nodes with readers."""
    for spans in dict.fromkeys(rule.spans for rule in RULES.values() if rule.spans is not None):
        yield from spans(net)
    yield from of_readers(net, matched)


def _constant(net: Net, value: int) -> bool:
    return net.values[value].role is Role.CONSTANT


def _renumbered(node: Node, number: Callable[[int], int]) -> Node:
    return replace(
        node,
        operands=tuple(
            replace(o, pieces=tuple(replace(p, value=number(p.value)) for p in o.pieces))
            for o in node.operands
        ),
        outputs=tuple(map(number, node.outputs)),
        base=None if node.base is None else number(node.base),
        addends=tuple(map(number, node.addends)),
        in_place=tuple(map(number, node.in_place)),
    )
