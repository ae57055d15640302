"""No copies: data is read where it is, or written where it belongs, instead of being copied."""

from dataclasses import replace

from tvm_serenity.rewrite.builder import Builder, Expr
from tvm_serenity.rewrite.net import Kind, Net, Node, Operand, Piece
from tvm_serenity.rewrite.reach import of_joined
from tvm_serenity.rewrite.rule import Ability, Match, Promise, Rule, When

_NAME = "no-copies"

_VIEW, _SLICE, _BUFFER = "as a view", "read through", "in its buffer"

_READERS = (Kind.CONV, Kind.POOL, Kind.MAP, Kind.ADD)
"""Kinds whose kernels can read a slice through an offset."""

_WRITERS = (Kind.CONV, Kind.POOL, Kind.MAP, Kind.ADD)
"""Kinds whose kernels can write to a part of a buffer."""

_SPECIFICATION = """
1. Copies that keep every byte in place (a split into one part, a reshape, a transpose that only
   moves axes of size 1, an identity) are views: no op, no bytes.
2. The kernels of a slice's readers read it through an offset, so that it is no op.
3. The producers of the pieces of a concat write to its buffer: along the outermost axis that is not
   1 contiguously, along other axes with the strides of the buffer. Other readers of a piece read it
   there, through an offset.
4. Promise: bit-identical.
5. Refused for a slice: an output; readers whose kernels cannot read through an offset (named).
   Refused for a buffer: a piece that is an input or an output, that occurs twice, that has a reader
   whose kernel cannot read through an offset, or a producer whose kernel cannot write a part
   (named).
"""


def _matches(net: Net) -> list[Match]:
    """Return every copy, slice and concat."""
    forms = {Kind.COPY: _VIEW, Kind.SLICE: _SLICE, Kind.CONCAT: _BUFFER}
    return [Match(_NAME, n.name, forms[n.kind]) for n in net.nodes if n.kind in forms]


def _check(net: Net, match: Match) -> str | None:
    """Return why the bytes must be copied, or None."""
    node = net.find(match.node)
    if node is None:
        return "the op no longer exists"
    if match.form == _VIEW:
        return None if node.kind is Kind.COPY else "the op no longer exists"
    if match.form == _SLICE:
        return _slice_refusal(net, node)
    return _buffer_refusal(net, node)


def _apply(net: Net, match: Match) -> Net:
    """Return the net without the copy."""
    node = net.nodes[net.index[match.node]]
    if match.form == _VIEW:
        return net.edit({node.name: [replace(node, kind=Kind.VIEW)]})
    if match.form == _SLICE:
        return _read_through(net, node)
    return _into_buffer(net, node)


def emit(build: Builder, piece: Piece) -> Expr:
    """Return the expression of a piece: a part of a tensor, and ops computed during the read."""
    x = build.value(piece.value)
    if piece.part is not None:
        x = build.part(x, *piece.part)
    for source in piece.through:
        x = build.again(source, [x])
    return x


def _slice_refusal(net: Net, node: Node) -> str | None:
    if node.output in net.outputs:
        return "it is an output of the network"
    if len(node.operands[0].pieces) != 1:
        return "it reads pieces"
    readers = [net.nodes[i] for i in net.readers_of(node.output)]
    for reader in readers:
        if reader.kind not in _READERS or node.output in (reader.base, *reader.addends):
            return f"{reader.name!r} cannot read through an offset"
    return None if readers else "no op reads it"


def _read_through(net: Net, node: Node) -> Net:
    source = node.operands[0].pieces[0]
    shape = net.values[node.output].shape
    inlined = replace(source, through=(*source.through, node.source), shape=shape)
    changed: dict[str, list[Node]] = {node.name: []}
    for i in net.readers_of(node.output):
        reader = net.nodes[i]
        operands = tuple(
            Operand(
                tuple(
                    replace(inlined, through=(*inlined.through, *p.through), shape=p.shape or shape)
                    if p.value == node.output
                    else p
                    for p in o.pieces
                ),
                o.axis,
            )
            for o in reader.operands
        )
        keep = tuple(v for v in reader.in_place if v != node.output)
        changed[reader.name] = [replace(reader, operands=operands, in_place=keep)]
    return net.edit(changed)


def _buffer_refusal(net: Net, node: Node) -> str | None:
    pieces = node.operands[0].pieces
    if len({p.value for p in pieces}) < len(pieces):
        return "a piece occurs twice"
    for piece in pieces:
        name, maker = net.values[piece.value].name, net.maker(piece.value)
        if maker is None:
            return f"piece {name!r} is an input"
        if maker.kind not in _WRITERS or len(maker.outputs) > 1:
            return f"{maker.name!r} cannot write a part of a buffer"
        if maker.axis != node.axis:
            return f"{maker.name!r} has no such axis"
        if maker.base is not None or maker.into is not None:
            return f"{maker.name!r} writes another buffer"
        if not piece.direct:
            return f"piece {name!r} is a part of another tensor"
        if piece.value in net.outputs:
            return f"piece {name!r} is an output of the network"
        for reader in (net.nodes[i] for i in net.readers_of(piece.value)):
            if reader is node:
                continue
            if reader.kind not in _READERS or piece.value in (reader.base, *reader.addends):
                return f"{reader.name!r} cannot read piece {name!r} through an offset"
        if net.values[piece.value].dtype != net.values[node.output].dtype:
            return f"piece {name!r} has another type"
    return None


def _into_buffer(net: Net, node: Node) -> Net:
    assert node.axis is not None
    start, spans = 0, {}
    for piece in node.operands[0].pieces:
        stop = start + net.channels(piece.value, node.axis)
        spans[piece.value] = (start, stop)
        start = stop
    order = sorted(spans, key=lambda v: net.producer[v])
    changed: dict[str, list[Node]] = {node.name: []}
    values, base, number = [], None, len(net.values)
    buffer = net.values[node.output]
    for i, value in enumerate(order):
        maker = net.nodes[net.producer[value]]
        last = i == len(order) - 1
        new = node.output if last else number
        if not last:
            values.append(replace(buffer, name=f"{buffer.name}#{i}"))
            number += 1
        changed[maker.name] = [
            replace(
                changed.get(maker.name, [maker])[0],
                into=spans[value],
                base=base,
                outputs=(new,),
                in_place=(),
            )
        ]
        for reader in (net.nodes[r] for r in net.readers_of(value)):
            if reader is not node:
                now = changed.get(reader.name, [reader])[0]
                part = (node.axis, *spans[value])
                changed[reader.name] = [_from_buffer(net, now, value, new, part)]
        base = new
    return net.edit(changed, values)


def _from_buffer(net: Net, node: Node, value: int, buffer: int, part: tuple[int, int, int]) -> Node:
    """Return a reader of a piece that now lives in a buffer."""
    shape = net.values[value].shape

    def moved(piece: Piece) -> Piece:
        if piece.value != value:
            return piece
        return replace(piece, value=buffer, part=part, shape=piece.shape or shape)

    operands = tuple(replace(o, pieces=tuple(map(moved, o.pieces))) for o in node.operands)
    keep = tuple(v for v in node.in_place if v != value)
    return replace(node, operands=operands, in_place=keep)


RULE = Rule(
    name=_NAME,
    exchanges=(
        "splits into one part, reshapes, transposes of axes of size 1: views. Slices and parts "
        "of splits: read through an offset. Pieces of a concat: written to its buffer, also "
        "with strides"
    ),
    promise=Promise.IDENTICAL,
    specification=_SPECIFICATION,
    matches=_matches,
    check=_check,
    apply=_apply,
    when={_VIEW: When.FREE, _SLICE: When.FREE, _BUFFER: When.CHOSEN},
    abilities=frozenset(Ability),
    spans=of_joined,
)
