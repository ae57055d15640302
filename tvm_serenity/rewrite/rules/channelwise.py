"""Channel-wise partitioning: a convolution of a concat becomes a sum of partial convolutions."""

from dataclasses import replace

from tvm_serenity.rewrite.builder import Builder, Expr
from tvm_serenity.rewrite.net import Kind, Net, Node, Operand, Piece
from tvm_serenity.rewrite.pieces import (
    flat_pieces,
    group_parts,
    group_refusal,
    new_value,
    piece_channels,
)
from tvm_serenity.rewrite.reach import of_joined
from tvm_serenity.rewrite.rule import Match, Promise, Rule

_NAME = "channelwise"

_SPECIFICATION = """
1. Pattern: a convolution that reads a concat along the channels, of two pieces or more (SERENITY,
   section 3.3, equations 3 to 6). Concats of concats are one concat of all their pieces.
2. Result: for each piece a partial convolution with the weights of the piece's channels. The first
   writes the sum, each other one accumulates into the same buffer, the last one applies bias and
   activation. Weights are sliced, never copied: their bytes stay the same.
3. The partial convolutions have the order in which the network produces their pieces.
4. The sum has the accumulator type of the convolution. If that is as wide as the output, the
   output is the same buffer; if it is wider (int32 for int8), the last one writes the output.
5. Grouped convolutions: pieces must begin and end at group boundaries. Each partial convolution
   then writes the output channels of its groups to their place in the one output buffer.
6. Other readers of the concat keep it; without readers it is removed.
7. Promise: equal in exact arithmetic. The sum has another order of terms: exact for integers.
8. Refused: a concat along another axis; unknown weights or layout; groups that a piece splits; a
   convolution that is part of another rewrite's buffer.
"""


def _matches(net: Net) -> list[Match]:
    """Return every convolution of several pieces."""
    return [
        Match(_NAME, node.name)
        for node in net.nodes
        if node.kind is Kind.CONV and not _is_depthwise(node) and len(_all_pieces(net, node)) > 1
    ]


def _check(net: Net, match: Match) -> str | None:
    """Return why the convolution cannot be split, or None."""
    node = net.find(match.node)
    if node is None or node.kind is not Kind.CONV or node.conv is None:
        return "the op no longer exists"
    if node.conv.pinned:
        return node.conv.pinned
    if node.axis is None:
        return "its layout is unknown"
    pieces = flat_pieces(net, node.operands[0], node.axis)
    if len(pieces) < 2:
        return "the concat is not along the channels"
    if node.into is not None:
        return "it writes a part of a buffer already"
    if node.conv.groups > 1:
        return group_refusal(net, node, pieces)
    return None


def _apply(net: Net, match: Match) -> Net:
    """Return the net with partial convolutions instead."""
    node = net.nodes[net.index[match.node]]
    assert node.conv is not None
    if node.conv.groups > 1:
        return _by_groups(net, node)
    assert node.axis is not None
    pieces = flat_pieces(net, node.operands[0], node.axis)
    first = (node.reads or (0, 0))[0]
    spans = [(first + a, first + b) for a, b in piece_channels(net, node, pieces)]
    terms = sorted(zip(pieces, spans, strict=True), key=lambda t: _producer_index(net, t[0].value))
    values, nodes = [], []
    same_buffer = _is_sum_as_wide(net, node)
    base, number = node.base, len(net.values)
    like = net.values[node.output]
    channels = net.channels(node.output, node.axis)
    for i, (piece, span) in enumerate(terms):
        last = i == len(terms) - 1
        part = replace(
            node,
            name=f"{node.name}#{i}",
            operands=(Operand((piece,), node.axis),),
            reads=span,
            base=base,
            addends=node.addends if i == 0 else (),
            biases=node.biases if last else (),
            tail=node.tail if last else None,
            outputs=node.outputs if last else (number,),
            in_place=node.in_place if i == 0 else (),
        )
        if last and not same_buffer and base is not None:
            part = replace(part, base=None, addends=(*part.addends, base))
        if not last:
            sums = new_value(like, f"{like.name}#{i}", channels, node.axis, node.conv.sum_dtype)
            values.append(sums)
            base, number = number, number + 1
        nodes.append(part)
    return net.edit({node.name: nodes}, values)


def emit(build: Builder, node: Node, x: Expr) -> Expr:
    """Return the op's own term: a convolution of ``x`` with the weights of its channels."""
    return build.convolution(node, x)


def _is_depthwise(node: Node) -> bool:
    """Return whether a convolution is depthwise; ``kernelwise`` handles those."""
    return node.conv is not None and 1 < node.conv.groups == node.conv.in_channels


def _is_sum_as_wide(net: Net, node: Node) -> bool:
    """Return whether the output of a convolution has its accumulator type."""
    assert node.conv is not None
    return net.values[node.output].dtype == node.conv.sum_dtype


def _by_groups(net: Net, node: Node) -> Net:
    parts = sorted(group_parts(net, node), key=lambda p: _producer_index(net, p[0].value))
    values, nodes = [], []
    base, number = None, len(net.values)
    like = net.values[node.output]
    for i, (piece, reads, makes) in enumerate(parts):
        last = i == len(parts) - 1
        nodes.append(
            replace(
                node,
                name=f"{node.name}#{i}",
                operands=(Operand((piece,), node.axis or 0),),
                reads=reads,
                makes=makes,
                into=makes,
                base=base,
                outputs=node.outputs if last else (number,),
                in_place=(),
            )
        )
        if not last:
            values.append(replace(like, name=f"{like.name}#{i}"))
            base, number = number, number + 1
    return net.edit({node.name: nodes}, values)


def _all_pieces(net: Net, node: Node) -> tuple[Piece, ...]:
    if not node.operands:
        return ()
    operand = node.operands[0]
    if len(operand.pieces) > 1:
        return operand.pieces
    maker = net.maker(operand.pieces[0].value)
    if maker is not None and maker.kind is Kind.CONCAT and operand.pieces[0].direct:
        return maker.operands[0].pieces
    return operand.pieces


def _producer_index(net: Net, value: int) -> int:
    return net.producer.get(value, -1)


RULE = Rule(
    name=_NAME,
    exchanges=(
        "concat, then a convolution: one partial convolution per piece, each accumulates into the "
        "same buffer as soon as its piece exists; the last applies bias and activation. Concats "
        "of concats, several readers, groups that end where pieces do"
    ),
    promise=Promise.RESUMMED,
    specification=_SPECIFICATION,
    matches=_matches,
    check=_check,
    apply=_apply,
    spans=of_joined,
    published=True,
)
