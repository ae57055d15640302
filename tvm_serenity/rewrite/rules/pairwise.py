"""Pairwise partitioning: splits an elementwise op of several tensors by a concat's pieces."""

from dataclasses import replace

from tvm_serenity.rewrite.net import Kind, Net, Node, Operand, Range
from tvm_serenity.rewrite.pieces import flat_pieces, in_pieces, is_joined, piece_channels
from tvm_serenity.rewrite.reach import of_readers
from tvm_serenity.rewrite.rule import Ability, Match, Promise, Rule, Span
from tvm_serenity.rewrite.rules.in_place import overwritable

_NAME = "pairwise"

_SPECIFICATION = """
1. Pattern: an add, or another elementwise op of two tensors or more, that reads a concat along the
   channels: a shortcut around concatenated branches (GhostNet, MixConv).
2. Result: the op on each piece, with the constants of its channels, and a concat of their results.
   An operand of one tensor is read through an offset; an operand that is a concat, split at the
   same channels, is read piece by piece.
3. A piece that dies in its op may be overwritten if the unsplit operand could be.
4. Promise: bit-identical, every element is computed as before.
5. Refused: operands split at different channels, or read in parts already; a concat along another
   axis; an unknown layout; an op that is part of a sum, a buffer or a larger op.
"""


def _matches(net: Net) -> list[Match]:
    """Return every elementwise op of several operands, one of which is a concat."""
    return [
        Match(_NAME, node.name)
        for node in net.nodes
        if node.kind in (Kind.ADD, Kind.MAP)
        and len(node.operands) > 1
        and any(is_joined(net, operand) for operand in node.operands)
    ]


def _check(net: Net, match: Match) -> str | None:
    """Return why the op cannot be split by pieces, or None."""
    node = net.find(match.node)
    if node is None or len(node.operands) < 2:
        return "the op no longer exists"
    if node.axis is None:
        return "its layout is unknown"
    if node.base is not None or node.addends or node.into is not None:
        return "it is part of a sum or of a buffer"
    if node.makes is not None or node.reads is not None:
        return "it is part of a larger op already"
    cuts = [_spans(net, node, operand) for operand in node.operands]
    if not all(cuts):
        return "an operand is joined along another axis"
    joined = [cut for cut in cuts if len(cut) > 1]
    if not joined:
        return "the concat is not along the channels"
    if any(cut != joined[0] for cut in joined):
        return "its operands are split at different channels"
    pieces = [flat_pieces(net, operand, node.axis) for operand in node.operands]
    if any(len(parts) == 1 and not parts[0].direct for parts in pieces):
        return "it reads a part of a tensor already"
    return None


def _apply(net: Net, match: Match) -> Net:
    """Return the net with the op on each piece, followed by the concat."""
    node = net.nodes[net.index[match.node]]
    spans = max((_spans(net, node, operand) for operand in node.operands), key=len)
    parts = [
        (tuple(_operand(net, node, operand, i, span) for operand in node.operands), span, span)
        for i, span in enumerate(spans)
    ]
    cut = in_pieces(net, node, parts)
    if not node.in_place:
        return cut
    own = [cut.nodes[cut.index[f"{node.name}@{i}"]] for i in range(len(parts))]
    return cut.edit({n.name: [replace(n, in_place=overwritable(cut, n))] for n in own})


def _operand(net: Net, node: Node, operand: Operand, index: int, span: Range) -> Operand:
    """Return the operand of the op on one piece."""
    assert node.axis is not None
    pieces = flat_pieces(net, operand, node.axis)
    if len(pieces) > 1:
        return Operand((pieces[index],), node.axis)
    shape = net.values[pieces[0].value].shape
    assert shape is not None
    cut = tuple(span[1] - span[0] if i == node.axis else e for i, e in enumerate(shape))
    return Operand((replace(pieces[0], part=(node.axis, *span), shape=cut),), node.axis)


def _spans(net: Net, node: Node, operand: Operand) -> list[Range]:
    """Return the channel ranges of an operand's pieces; none if joined along another axis."""
    assert node.axis is not None
    return piece_channels(net, node, flat_pieces(net, operand, node.axis))


def _reach(net: Net) -> list[Span]:
    return list(of_readers(net, frozenset(match.node for match in _matches(net))))


RULE = Rule(
    name=_NAME,
    exchanges=(
        "concat, then an add or another elementwise op with a second tensor: one op per piece, "
        "with the channels of the other tensor, then the concat, which moves down"
    ),
    promise=Promise.IDENTICAL,
    specification=_SPECIFICATION,
    matches=_matches,
    check=_check,
    apply=_apply,
    abilities=frozenset({Ability.READ_PIECES}),
    spans=_reach,
    prepares=True,
)
