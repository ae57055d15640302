"""Elementwise in place: an elementwise op overwrites an operand that dies there."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.graph import Role
from tvm_serenity.rewrite.net import Kind, Net, Node
from tvm_serenity.rewrite.rule import Ability, Match, Promise, Rule, When

_NAME = "in-place"

_SPECIFICATION = """
1. Pattern: an elementwise op or an add, with an operand of the output's shape and type.
2. Result: the op may overwrite that operand. The order decides: it does if the operand dies there,
   and the search counts that. With several operands, the first one that dies is overwritten.
3. Promise: bit-identical; each element is read before it is written.
4. Refused: operands that the caller owns or that are constants, operands read in pieces or through
   a slice, of another shape or type, ops that write a part of a buffer or accumulate into a sum.
"""


def _matches(net: Net) -> list[Match]:
    """Return every elementwise op without permission to overwrite."""
    nodes = [n for n in net.nodes if n.kind in (Kind.MAP, Kind.ADD) and not n.in_place]
    return [Match(_NAME, n.name) for n in nodes]


def _check(net: Net, match: Match) -> str | None:
    """Return why the op needs an output of its own, or None."""
    node = net.find(match.node)
    if node is None:
        return "the op no longer exists"
    if node.base is not None or node.into is not None:
        return "it writes to a shared buffer already"
    return None if overwritable(net, node) else _reason(net, node)


def _apply(net: Net, match: Match) -> Net:
    """Return the net in which the op may overwrite an operand."""
    return _apply_all(net, [match])


def _apply_all(net: Net, matches: Sequence[Match]) -> Net:
    """Return the net with several matches applied; they are independent."""
    nodes = [net.nodes[net.index[match.node]] for match in matches]
    return net.edit({n.name: [replace(n, in_place=overwritable(net, n))] for n in nodes})


def overwritable(net: Net, node: Node) -> tuple[int, ...]:
    """Return the operands that an elementwise op may overwrite."""
    pairs = [(o.pieces[0], o) for o in node.operands if len(o.pieces) == 1]
    return tuple(
        dict.fromkeys(
            piece.value
            for piece, _ in pairs
            if piece.direct and _may_hold(net, piece.value, node.output)
        )
    )


def _may_hold(net: Net, value: int, output: int) -> bool:
    """Return whether ``value``'s storage is not the caller's and may become that of ``output``."""
    old, new = net.values[value], net.values[output]
    root = net.graph.tensors[net.graph.storage[value]]
    return (
        value in net.producer
        and value not in net.outputs
        and (old.shape, old.dtype, old.role) == (new.shape, new.dtype, new.role)
        and (root.size_bytes, root.role) == (new.size_bytes, Role.ACTIVATION)
    )


def _reason(net: Net, node: Node) -> str:
    values = [v for o in node.operands for v in o.values]
    if any(len(o.pieces) > 1 or not o.pieces[0].direct for o in node.operands):
        return "it reads pieces"
    if any(v in net.inputs for v in values):
        return "the caller owns its operand"
    return "no operand has the output's shape and type"


def settle(net: Net) -> Net:
    """Return the net, in its order, with every actual in-place write made explicit."""
    storage = net.graph.storage
    last: dict[int, int] = {}
    for i, node in enumerate(net.nodes):
        for value in (*node.inputs, *node.outputs):
            last[storage[value]] = i
    kept = {storage[v] for v in net.outputs}
    nodes = []
    for i, node in enumerate(net.nodes):
        roots = {v: storage[v] for v in node.in_place if node.base is None}
        taken = [v for v, root in roots.items() if last[root] == i and root not in kept]
        if taken and net.values[node.output].role is Role.ACTIVATION:
            node = replace(node, base=taken[0])
        nodes.append(replace(node, in_place=()))
    return replace(net, nodes=tuple(nodes))


RULE = Rule(
    name=_NAME,
    exchanges="elementwise ops and adds overwrite an operand that dies there",
    promise=Promise.IDENTICAL,
    specification=_SPECIFICATION,
    matches=_matches,
    check=_check,
    apply=_apply,
    apply_all=_apply_all,
    when={"": When.MARKED},
    abilities=frozenset({Ability.WRITE_PLACES}),
)
