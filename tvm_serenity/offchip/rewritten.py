"""A rewritten network as a subject of measurement: which part of a buffer each op writes."""

from tvm_serenity.offchip.storages import Subject
from tvm_serenity.rewrite import Net, RewriteOptions, rewrite
from tvm_serenity.rewrite.net import Node

TIME_LIMIT_S = 20.0


def rewritten_subject(net: Net) -> Subject | None:
    """Return ``net`` rewritten for the least peak, or None where no rule lowers it.

    An op that adds to a buffer reads and writes all of it; one that fills a part writes that.
    """
    found = rewrite(net, RewriteOptions(time_limit_s=TIME_LIMIT_S))
    return subject_of(found.net) if found.changed else None


def subject_of(net: Net) -> Subject:
    """Return the graph of ``net`` and the ranges that its ops write of their output's buffer."""
    writes = [(op, *_range(net, node)) for op, node in enumerate(net.nodes) if node.into]
    return Subject(net.graph, tuple(writes))


def _range(net: Net, node: Node) -> tuple[int, int]:
    """The bytes that a node writes; channels lie one after the other, whatever the layout."""
    assert node.into is not None
    value = node.outputs[0]
    size = net.values[net.graph.storage[value]].size_bytes
    channels = net.channels(value, node.axis if node.axis is not None else 1)
    lower, upper = node.into
    return size * lower // channels, size * upper // channels
