"""Kernel-wise partitioning: an op that works per channel is split by the pieces of a concat."""

from collections.abc import Sequence

from tvm_serenity.rewrite.builder import Builder, Expr
from tvm_serenity.rewrite.net import Kind, Net, Node, Operand, Piece, Range
from tvm_serenity.rewrite.pieces import (
    flat_pieces,
    group_parts,
    group_refusal,
    in_pieces,
    is_joined,
    piece_channels,
)
from tvm_serenity.rewrite.reach import of_joined
from tvm_serenity.rewrite.rule import Match, Promise, Rule

_NAME = "kernelwise"

_SPECIFICATION = """
1. Pattern: a depthwise (or aligned grouped) convolution, a pooling or an elementwise op that reads
   a concat along the channels (SERENITY, section 3.3, equations 7 and 8).
2. Result: the op on each piece, with the weights and constants of its channels, and a concat of
   their results. So the concat moves down, until another rule removes it or it is an output.
3. Weights are sliced, never copied: their bytes stay the same.
4. Promise: bit-identical, every element is computed as before.
5. Refused: a concat along another axis; unknown weights or layout; groups that a piece splits; an
   op with more than one operand; a convolution that is part of a sum.
"""


def _matches(net: Net) -> list[Match]:
    """Return every per-channel op that reads several pieces."""
    return [
        Match(_NAME, node.name)
        for node in net.nodes
        if node.separate and len(node.operands) == 1 and is_joined(net, node.operands[0])
    ]


def _check(net: Net, match: Match) -> str | None:
    """Return why the op cannot be split by pieces, or None."""
    node = net.find(match.node)
    if node is None or not node.operands:
        return "the op no longer exists"
    if node.axis is None:
        return "its layout is unknown"
    pieces = flat_pieces(net, node.operands[0], node.axis)
    if len(pieces) < 2:
        return "the concat is not along the channels"
    if node.base is not None or node.addends or node.into is not None:
        return "it is part of a sum or of a buffer"
    if node.makes is not None or node.reads is not None:
        return "it is part of a larger op already"
    if node.kind is Kind.CONV:
        assert node.conv is not None
        return node.conv.pinned or group_refusal(net, node, pieces)
    return None


def _apply(net: Net, match: Match) -> Net:
    """Return the net with the op on each piece, followed by the concat."""
    node = net.nodes[net.index[match.node]]
    assert node.axis is not None
    axis = node.axis
    parts = [((Operand((p,), axis),), reads, makes) for p, reads, makes in _parts(net, node)]
    return in_pieces(net, node, parts)


def emit(build: Builder, node: Node, operands: Sequence[Expr]) -> Expr:
    """Return the op's source computed on operands, with the constants of its channels."""
    return build.again(node.source, operands, node)


def _parts(net: Net, node: Node) -> list[tuple[Piece, Range, Range]]:
    """Return each piece with its input channels and its output channels."""
    assert node.axis is not None
    if node.kind is Kind.CONV:
        return group_parts(net, node)
    pieces = flat_pieces(net, node.operands[0], node.axis)
    spans = piece_channels(net, node, pieces)
    return [(p, span, span) for p, span in zip(pieces, spans, strict=True)]


RULE = Rule(
    name=_NAME,
    exchanges=(
        "concat, then a depthwise (or aligned grouped) convolution, pooling or elementwise op: "
        "one op per piece, then the concat, which moves down until rule 1 removes it"
    ),
    promise=Promise.IDENTICAL,
    specification=_SPECIFICATION,
    matches=_matches,
    check=_check,
    apply=_apply,
    spans=of_joined,
    published=True,
    prepares=True,
)
