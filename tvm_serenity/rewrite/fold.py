"""Concat folded into its consumers: their kernels read the pieces."""

from dataclasses import replace

from tvm_serenity.rewrite.match import Match
from tvm_serenity.rewrite.net import Kind, Net, Node, Operand, Piece

NAME = "fold"

READERS = (Kind.CONV, Kind.POOL, Kind.MAP, Kind.ADD, Kind.CONCAT)
"""Kinds whose kernels compute a concat while they read."""

SPEC = """
1. Pattern: a concat whose readers are convolutions, poolings, elementwise ops, adds or concats
   along the same axis.
2. Result: each reader reads the pieces; its kernel picks the piece by the index, without storing
   the concat. The concat is no op any more.
3. Never needs more memory: while the concat would be live, its pieces have as many bytes.
4. Promise: bit-identical, the same terms in the same order.
5. Refused: a concat that is an output; that nothing reads; readers of other kinds, named.
"""


def matches(net: Net) -> list[Match]:
    """Every concat."""
    return [Match(NAME, node.name) for node in net.nodes if node.kind is Kind.CONCAT]


def check(net: Net, match: Match) -> str | None:
    """Why the concat stays."""
    node = net.find(match.node)
    if node is None:
        return "it is not there any more"
    if node.base is not None or node.into is not None:
        return "its pieces are written into its buffer"
    if node.output in net.outputs:
        return "the caller gets it"
    readers = [net.nodes[i] for i in net.readers_of(node.output)]
    if not readers:
        return "nothing reads it"
    for reader in readers:
        if reader.kind not in READERS or node.output in (reader.base, *reader.addends):
            return f"{reader.name!r} cannot read pieces"
        if reader.kind is Kind.CONCAT and reader.axis != node.axis:
            return f"{reader.name!r} joins along another axis"
        for operand in reader.operands:
            if node.output in operand.values and (
                len(operand.pieces) > 1 and operand.axis != node.axis
            ):
                return f"{reader.name!r} reads pieces along another axis"
            if any(p.value == node.output and p.slices for p in operand.pieces):
                return f"{reader.name!r} reads a slice of it"
    return None


def apply(net: Net, match: Match) -> Net:
    """The net without the concat."""
    node = net.nodes[net.index[match.node]]
    assert node.axis is not None
    pieces = node.operands[0].pieces
    changed: dict[str, list[Node]] = {node.name: []}
    for i in net.readers_of(node.output):
        reader = net.nodes[i]
        operands = tuple(_inline(o, node.output, pieces, node.axis) for o in reader.operands)
        changed[reader.name] = [
            replace(
                reader,
                operands=operands,
                in_place=tuple(v for v in reader.in_place if v != node.output),
            )
        ]
    return net.edit(changed)


def _inline(operand: Operand, value: int, pieces: tuple[Piece, ...], axis: int) -> Operand:
    if value not in operand.values:
        return operand
    flat = [q for p in operand.pieces for q in (pieces if p.value == value else (p,))]
    return Operand(tuple(flat), axis)
