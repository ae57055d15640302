"""Converts a rewritten network to a subject: with the part of a buffer that each op writes."""

from tvm_serenity.offchip.storages import Subject
from tvm_serenity.rewrite import Net, RewriteOptions, rewrite
from tvm_serenity.rewrite.net import Node

TIME_LIMIT_S = 20.0


def rewritten_subject(net: Net) -> Subject | None:
    """Return ``net`` rewritten for the least peak, or None if no rule lowers it.

    An op that accumulates into a buffer reads and writes all of it; an op that fills a part writes
    that part.
    """
    rewritten = rewrite(net, RewriteOptions(time_limit_s=TIME_LIMIT_S))
    return subject_of(rewritten.net) if rewritten.changed else None


def subject_of(net: Net) -> Subject:
    """Return the graph of ``net``, with the ranges that its ops write of their output's buffer."""
    writes = [(op, *_range(net, node)) for op, node in enumerate(net.nodes) if node.into]
    return Subject(net.graph, tuple(writes))


def _range(net: Net, node: Node) -> tuple[int, int]:
    """Return the bytes that a node writes; channels count as consecutive, whatever the layout."""
    assert node.into is not None
    value = node.outputs[0]
    size = net.values[net.graph.storage[value]].size_bytes
    channels = net.channels(value, node.axis if node.axis is not None else 1)
    lower, upper = node.into
    return size * lower // channels, size * upper // channels
