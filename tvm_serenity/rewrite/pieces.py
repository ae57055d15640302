"""Operands in pieces along the channels, and the values that ops on pieces make."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.graph import Tensor
from tvm_serenity.rewrite.net import Kind, Net, Node, Operand, Piece, Range


def flat_pieces(net: Net, operand: Operand, axis: int) -> tuple[Piece, ...]:
    """Return the pieces of an operand along ``axis``; concats it reads are looked through.

    There are none where it is joined along another axis.
    """
    if len(operand.pieces) > 1 and operand.axis != axis:
        return ()
    result: list[Piece] = []
    for piece in operand.pieces:
        maker = net.maker(piece.value) if piece.whole else None
        if maker is not None and maker.kind is Kind.CONCAT and maker.axis == axis:
            result += flat_pieces(net, maker.operands[0], axis)
        else:
            result.append(piece)
    return tuple(result)


def is_joined(net: Net, operand: Operand) -> bool:
    """Return whether an operand is a concat, or has been read in pieces since."""
    if len(operand.pieces) > 1:
        return True
    maker = net.maker(operand.pieces[0].value)
    return maker is not None and maker.kind is Kind.CONCAT and operand.pieces[0].whole


def piece_channels(net: Net, node: Node, pieces: Sequence[Piece]) -> list[Range]:
    """Return the channels of the operand that each piece is."""
    assert node.axis is not None
    start, result = 0, []
    for piece in pieces:
        shape = piece.shape
        stop = start + (shape[node.axis] if shape else net.channels(piece.value, node.axis))
        result.append((start, stop))
        start = stop
    return result


def new_value(like: Tensor, name: str, channels: int, axis: int, dtype: str) -> Tensor:
    """Return an activation like another, with other channels and another type."""
    assert like.shape is not None
    shape = tuple(channels if i == axis else extent for i, extent in enumerate(like.shape))
    bits = 8 * like.size_bytes * channels // max(like.shape[axis], 1)
    size = bits // 8 if dtype == like.dtype else elements(shape) * width_of(dtype)
    return Tensor(name, size, shape, dtype)


def elements(shape: Sequence[int]) -> int:
    """Return how many elements a shape holds."""
    count = 1
    for extent in shape:
        count *= extent
    return count


def width_of(dtype: str) -> int:
    """Return the bytes of an element, by numpy's name of its type."""
    digits = "".join(c for c in dtype if c.isdigit())
    return max(int(digits or 8) // 8, 1)


def group_refusal(net: Net, node: Node, pieces: tuple[Piece, ...]) -> str | None:
    """Return why pieces and groups do not fit together, if they do not."""
    assert node.conv is not None
    if node.reads is not None:
        return "it is a part of a grouped convolution already"
    per_group = node.conv.in_channels // node.conv.groups
    for piece, (start, stop) in zip(pieces, piece_channels(net, node, pieces), strict=True):
        if start % per_group or stop % per_group:
            name = net.values[piece.value].name
            return f"piece {name!r} ends within a group of {per_group} channels"
    return None


def group_parts(net: Net, node: Node) -> list[tuple[Piece, Range, Range]]:
    """Return each piece of an aligned grouped convolution, its channels, the outputs it makes."""
    assert node.conv is not None
    assert node.axis is not None
    pieces = flat_pieces(net, node.operands[0], node.axis)
    per_group = node.conv.in_channels // node.conv.groups
    made = node.conv.out_channels // node.conv.groups
    return [
        (piece, (a, b), (a // per_group * made, b // per_group * made))
        for piece, (a, b) in zip(pieces, piece_channels(net, node, pieces), strict=True)
    ]


Part = tuple[tuple[Operand, ...], Range, Range]
"""What an op on a piece reads, and the channels of the whole op's input and output that it is."""


def in_pieces(net: Net, node: Node, parts: Sequence[Part]) -> Net:
    """Return the net with an op on each piece, NAME@NUMBER, and a concat of what they make."""
    assert node.axis is not None
    number, like = len(net.values), net.values[node.output]
    values, nodes = [], []
    for i, (operands, reads, makes) in enumerate(parts):
        count = makes[1] - makes[0]
        values.append(new_value(like, f"{like.name}@{i}", count, node.axis, like.dtype))
        part = replace(node, name=f"{node.name}@{i}", operands=operands, outputs=(number + i,))
        nodes.append(replace(part, reads=reads, makes=makes, in_place=()))
    made = Operand(tuple(Piece(number + i) for i in range(len(parts))), node.axis)
    joined = Node(f"{node.name}@concat", Kind.CONCAT, (made,), node.outputs, -1, node.axis)
    return net.edit({node.name: [*nodes, joined]}, values)
