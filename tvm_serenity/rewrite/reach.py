"""Computes which nodes a match may change or move, so that no region boundary separates them."""

from collections.abc import Iterator, Sequence

from tvm_serenity.rewrite.net import Kind, Net
from tvm_serenity.rewrite.rule import Span


def of_joined(net: Net) -> Iterator[Span]:
    """Yield, for each op that joins or reads pieces, the nodes between them and its readers.

    Its partial ops may run as soon as the first piece exists, and a concat may move down.
    """
    last = latest(net)
    for i, node in enumerate(net.nodes):
        if node.kind is Kind.CONCAT or any(len(o.pieces) > 1 for o in node.operands):
            yield _first_maker(net, i) + 1, last[i]


def of_sums(net: Net) -> Iterator[Span]:
    """Yield, for each add, the nodes from the producer of its first operand to itself."""
    last = latest(net)
    for i, node in enumerate(net.nodes):
        if node.kind is Kind.ADD:
            yield _first_maker(net, i), last[i]


def of_readers(net: Net, names: frozenset[str]) -> Iterator[Span]:
    """Yield, for each node of these names, the nodes from it to its last reader."""
    last = latest(net)
    for i, node in enumerate(net.nodes):
        if node.name in names:
            yield i, _after_readers(net, i, last)


def latest(net: Net) -> list[int]:
    """Return, for each op, the last position that it may move down to, if it is a concat."""
    last = list(range(len(net.nodes)))
    for i in reversed(range(len(net.nodes))):
        node = net.nodes[i]
        if node.kind in (Kind.CONCAT, Kind.VIEW) or node.separate:
            last[i] = _after_readers(net, i, last)
    return last


def _after_readers(net: Net, index: int, last: Sequence[int]) -> int:
    values = net.nodes[index].outputs
    return max((last[i] for v in values for i in net.readers_of(v)), default=index)


def _first_maker(net: Net, index: int) -> int:
    return min(net.producer.get(v, -1) for v in net.nodes[index].inputs)
