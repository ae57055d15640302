"""Operands in pieces along the channels, and the values that ops on pieces produce."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.graph import Tensor
from tvm_serenity.rewrite.net import Kind, Net, Node, Operand, Piece, Range


def flat_pieces(net: Net, operand: Operand, axis: int) -> tuple[Piece, ...]:
    """Return the pieces of an operand along ``axis``, through the concats that it reads.

    There are none if it is joined along another axis.
    """
    if len(operand.pieces) > 1 and operand.axis != axis:
        return ()
    result: list[Piece] = []
    for piece in operand.pieces:
        maker = net.maker(piece.value) if piece.direct else None
        if maker is not None and maker.kind is Kind.CONCAT and maker.axis == axis:
            result += flat_pieces(net, maker.operands[0], axis)
        else:
            result.append(piece)
    return tuple(result)


def is_joined(net: Net, operand: Operand) -> bool:
    """Return whether an operand is a concat, or the pieces of one."""
    if len(operand.pieces) > 1:
        return True
    maker = net.maker(operand.pieces[0].value)
    return maker is not None and maker.kind is Kind.CONCAT and operand.pieces[0].direct


def piece_channels(net: Net, node: Node, pieces: Sequence[Piece]) -> list[Range]:
    """Return the channel range of the operand that each piece covers."""
    assert node.axis is not None
    start, result = 0, []
    for piece in pieces:
        shape = piece.shape
        stop = start + (shape[node.axis] if shape else net.channels(piece.value, node.axis))
        result.append((start, stop))
        start = stop
    return result


def new_value(like: Tensor, name: str, channels: int, axis: int, dtype: str) -> Tensor:
    """Return an activation like another one, with other channels and another type."""
    assert like.shape is not None
    shape = tuple(channels if i == axis else extent for i, extent in enumerate(like.shape))
    bits = 8 * like.size_bytes * channels // max(like.shape[axis], 1)
    size = bits // 8 if dtype == like.dtype else elements(shape) * width_of(dtype)
    return Tensor(name, size, shape, dtype)


def elements(shape: Sequence[int]) -> int:
    """Return the number of elements of a shape."""
    count = 1
    for extent in shape:
        count *= extent
    return count


def width_of(dtype: str) -> int:
    """Return the bytes of an element of a numpy type name."""
    digits = "".join(c for c in dtype if c.isdigit())
    return max(int(digits or 8) // 8, 1)


def group_refusal(net: Net, node: Node, pieces: tuple[Piece, ...]) -> str | None:
    """Return why pieces and groups do not fit together, or None."""
    assert node.conv is not None
    if node.reads is not None:
        return "it is part of a grouped convolution already"
    per_group = node.conv.in_channels // node.conv.groups
    for piece, (start, stop) in zip(pieces, piece_channels(net, node, pieces), strict=True):
        if start % per_group or stop % per_group:
            name = net.values[piece.value].name
            return f"piece {name!r} ends within a group of {per_group} channels"
    return None


def group_parts(net: Net, node: Node) -> list[tuple[Piece, Range, Range]]:
    """Return each piece of an aligned grouped convolution, its input channels and its outputs."""
    assert node.conv is not None
    assert node.axis is not None
    pieces = flat_pieces(net, node.operands[0], node.axis)
    per_group = node.conv.in_channels // node.conv.groups
    per_group_outputs = node.conv.out_channels // node.conv.groups
    return [
        (piece, (a, b), (a // per_group * per_group_outputs, b // per_group * per_group_outputs))
        for piece, (a, b) in zip(pieces, piece_channels(net, node, pieces), strict=True)
    ]


Part = tuple[tuple[Operand, ...], Range, Range]
"""The operands of an op on one piece, and its channels in the unsplit op's input and output."""


def in_pieces(net: Net, node: Node, parts: Sequence[Part]) -> Net:
    """Return the net with an op per piece, NAME@NUMBER, and a concat of their results."""
    assert node.axis is not None
    number, like = len(net.values), net.values[node.output]
    values, nodes = [], []
    for i, (operands, reads, makes) in enumerate(parts):
        count = makes[1] - makes[0]
        values.append(new_value(like, f"{like.name}@{i}", count, node.axis, like.dtype))
        part = replace(node, name=f"{node.name}@{i}", operands=operands, outputs=(number + i,))
        nodes.append(replace(part, reads=reads, makes=makes, in_place=()))
    results = Operand(tuple(Piece(number + i) for i in range(len(parts))), node.axis)
    joined = Node(f"{node.name}@concat", Kind.CONCAT, (results,), node.outputs, -1, node.axis)
    return net.edit({node.name: [*nodes, joined]}, values)
