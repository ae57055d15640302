"""Folds concats and cheap maps into their consumers, whose kernels read the pieces."""

from dataclasses import replace

from tvm_serenity.rewrite.builder import Builder, Expr
from tvm_serenity.rewrite.net import Kind, Net, Node, Operand, Piece
from tvm_serenity.rewrite.rule import Ability, Match, Promise, Rule, When
from tvm_serenity.rewrite.rules import no_copies

_NAME = "fold"

_READERS = (Kind.CONV, Kind.POOL, Kind.MAP, Kind.ADD, Kind.CONCAT)
"""Kinds whose kernels can read a concat piece by piece; opaque ones can unless a reason is given.
"""

_SPECIFICATION = """
1. Pattern: a concat whose readers are convolutions, matrix products, poolings, elementwise ops,
   adds, kernels that are not scheduled yet, or concats along the same axis.
2. Result: each reader reads the pieces; its kernel selects the piece by the index, without storing
   the concat, which is no op any more.
3. A cheap elementwise op of one operand (relu, clip, scaling by one number, dequantization) that is
   not wider than its output is folded likewise: its readers' kernels compute it while they read.
4. It never needs more memory: while the folded result would be live, its pieces have no more bytes.
5. Promise: bit-identical, the same terms in the same order.
6. Refused: outputs; results without readers; readers of other kinds, named; a map whose operand is
   wider than its output.
   operand is wider than its output.
"""


def _matches(net: Net) -> list[Match]:
    """Return every concat and every cheap map."""
    return [
        Match(_NAME, node.name)
        for node in net.nodes
        if node.kind is Kind.CONCAT or (node.cheap and node.kind is Kind.MAP)
    ]


def _check(net: Net, match: Match) -> str | None:
    """Return why the op cannot be folded, or None."""
    node = net.find(match.node)
    if node is None:
        return "the op no longer exists"
    if node.base is not None or node.into is not None:
        return "it is written to a shared buffer"
    if node.output in net.outputs:
        return "it is an output of the network"
    if node.kind is Kind.MAP:
        read = sum(net.values[v].size_bytes for v in node.operands[0].values)
        if len(node.operands) > 1 or read > net.values[node.output].size_bytes:
            return "it reads more bytes than it writes"
        if node.makes is not None:
            return "it is split into pieces"
    readers = [net.nodes[i] for i in net.readers_of(node.output)]
    if not readers:
        return "no op reads it"
    return next((r for r in (_reader_refusal(node, reader) for reader in readers) if r), None)


def _apply(net: Net, match: Match) -> Net:
    """Return the net without the op."""
    node = net.nodes[net.index[match.node]]
    own = node.operands[0]
    through = (node.source,) if node.kind is Kind.MAP else ()
    pieces = tuple(_after(net, p, through) for p in own.pieces)
    changed: dict[str, list[Node]] = {node.name: []}
    for i in net.readers_of(node.output):
        reader = net.nodes[i]
        operands = tuple(_inline(o, node.output, pieces, own.axis) for o in reader.operands)
        keep = tuple(v for v in reader.in_place if v != node.output)
        changed[reader.name] = [replace(reader, operands=operands, in_place=keep)]
    return net.edit(changed)


def emit(build: Builder, operand: Operand) -> Expr:
    """Return the expression of an operand: its pieces, joined if there are several."""
    pieces = [no_copies.emit(build, piece) for piece in operand.pieces]
    return pieces[0] if len(pieces) == 1 else build.joined(pieces, operand.axis)


def _reader_refusal(node: Node, reader: Node) -> str | None:
    several = len(node.operands[0].pieces) > 1
    axis = node.operands[0].axis
    if reader.kind not in _READERS and (reader.kind is not Kind.OPAQUE or reader.why_opaque):
        return f"{reader.name!r} cannot read pieces"
    if node.output in (reader.base, *reader.addends):
        return f"{reader.name!r} accumulates into it"
    if reader.kind is Kind.CONCAT and several and reader.axis != axis:
        return f"{reader.name!r} joins along another axis"
    for operand in reader.operands:
        for piece in operand.pieces:
            if piece.value != node.output:
                continue
            if several and len(operand.pieces) > 1 and operand.axis != axis:
                return f"{reader.name!r} reads pieces along another axis"
            if piece.part or (several and piece.through):
                return f"{reader.name!r} reads a part of it"
    return None


def _after(net: Net, piece: Piece, through: tuple[int, ...]) -> Piece:
    if not through:
        return piece
    shape = piece.shape or net.values[piece.value].shape
    return replace(piece, through=(*piece.through, *through), shape=shape)


def _inline(operand: Operand, value: int, pieces: tuple[Piece, ...], axis: int) -> Operand:
    if value not in operand.values:
        return operand
    flat: list[Piece] = []
    for p in operand.pieces:
        if p.value != value:
            flat.append(p)
        elif not p.direct:
            only = pieces[0]
            flat.append(replace(only, through=(*only.through, *p.through), shape=p.shape))
        else:
            flat += pieces
    return Operand(tuple(flat), axis if len(pieces) > 1 else operand.axis)


RULE = Rule(
    name=_NAME,
    exchanges=(
        "a concat before ops whose kernels can select the piece while they read: it is never "
        "stored. Cheap elementwise ops likewise"
    ),
    promise=Promise.IDENTICAL,
    specification=_SPECIFICATION,
    matches=_matches,
    check=_check,
    apply=_apply,
    when={"": When.FREE},
    abilities=frozenset({Ability.READ_PIECES}),
)
