"""Sums and buffers that several ops write one after the other, in any order.

The terms of a sum commute, and so do ops that write disjoint parts of one buffer. In a net they
have some order, in which each op continues the buffer of the one before. ``free_order`` is the
instance of the order search in which that order is open:

1. *begin* allocates the buffer (nothing, if the sum starts in an existing tensor);
2. each term reads the buffer and outputs a token of no bytes; terms do not wait for each other;
3. *end* waits for all tokens; its output is the buffer.

An order of that instance is an order of the net with the terms in that order: dropping *begin* and
*end* never adds a byte. So its least peak is the least over all orders of the terms too. If the
last op writes an output of another type, the instance leaves out that op's buffer at the end; it is
a bound then, and the peak is computed on the net itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.rewrite.net import Kind, Net, Node, Piece, as_owned


@dataclass(frozen=True)
class Free:
    """The instance with open orders: op i of ``graph`` is node ``nodes[i]``, -1 for added ops."""

    graph: Graph
    nodes: tuple[int, ...]


def chains(net: Net) -> list[list[Node]]:
    """Return the ops of each sum or buffer that several ops write, first to last."""
    continued = {node.base for node in net.nodes if _links(node)}
    result = []
    for node in net.nodes:
        if _links(node) and node.base is not None and node.output not in continued:
            chain = [node]
            while True:
                base = chain[0].base
                before = None if base is None else net.maker(base)
                if before is None or not _links(before) or not _alike(before, node):
                    break
                chain.insert(0, before)
            if len(chain) > 1:
                result.append(chain)
        elif _links(node) and node.output not in continued and _wider_sum(net, node):
            chain = [node]
            while True:
                before = net.maker(chain[0].addends[-1] if len(chain) == 1 else _base(chain[0]))
                if before is None or not _links(before):
                    break
                chain.insert(0, before)
                if before.base is None:
                    break
            if len(chain) > 1:
                result.append(chain)
    return result


def free_order(net: Net) -> Free | None:
    """Return the instance in which the order of terms is open, or None without such terms."""
    open_chains = chains(net) if net.sums_in_place else []
    if not open_chains:
        return None
    member = {
        node.name: (c, i) for c, chain in enumerate(open_chains) for i, node in enumerate(chain)
    }
    values = list(net.values)
    buffers: list[int] = []
    tokens: list[list[int]] = []
    for chain in open_chains:
        buffer = chain[0].base
        if buffer is None:
            buffer = len(values)
            first = values[chain[0].output]
            values.append(replace(first, name=f"{first.name}#buffer"))
        buffers.append(buffer)
        tokens.append(list(range(len(values), len(values) + len(chain))))
        values += [Tensor(f"{node.name}#done", 0) for node in chain]
    lasts: dict[int, int] = {}
    for chain in open_chains:
        if chain[-1].into is not None:
            lasts[chain[-1].output] = len(values)
            values.append(replace(values[chain[-1].output], name=f"{chain[-1].name}#last"))
    ops: list[Op] = []
    nodes: list[int] = []
    begun: set[int] = set()
    spans = {chain[-1].output: chain[-1].into for chain in open_chains}
    for index, node in enumerate(net.nodes):
        read = _reads(node, spans, lasts)
        if node.name not in member:
            ops.append(replace(net.graph.ops[index], inputs=read))
            nodes.append(index)
            continue
        c, i = member[node.name]
        chain, buffer = open_chains[c], buffers[c]
        if c not in begun and chain[0].base is None:
            ops.append(Op(f"{node.name}#begin", "begin", chain[0].addends, (buffer,)))
            nodes.append(-1)
        begun.add(c)
        own = {*((node.base,) if node.base is not None else ()), *node.addends}
        inputs = tuple(dict.fromkeys((buffer, *(v for v in read if v not in own))))
        token = (tokens[c][i],)
        if node.into is None:
            ops.append(Op(node.name, str(node.kind), inputs, token))
        else:
            made = lasts.get(node.output, node.output)
            ops.append(Op(node.name, str(node.kind), inputs, (made, *token), 0, buffer))
        nodes.append(index)
        if i == len(chain) - 1:
            shown = buffer if node.base is not None else None
            ops.append(Op(f"{node.name}#end", "end", (buffer, *tokens[c]), node.outputs, 0, shown))
            nodes.append(-1)
    graph = Graph(net.name, tuple(values), tuple(ops), net.inputs, net.outputs)
    return Free(as_owned(graph), tuple(nodes))


def _reads(
    node: Node, spans: dict[int, tuple[int, int] | None], lasts: dict[int, int]
) -> tuple[int, ...]:
    """Return the values that an op reads; for the last piece of a buffer, only that piece."""
    read = []
    for piece in (p for o in node.operands for p in o.pieces):
        last = piece.value in lasts and piece.part and piece.part[1:] == spans[piece.value]
        read.append(lasts[piece.value] if last else piece.value)
    base = () if node.base is None else (node.base,)
    return tuple(dict.fromkeys((*base, *read, *node.addends)))


def with_order(net: Net, free: Free, order: Sequence[int]) -> Net:
    """Return the net in an order of its free instance, with its terms in that order."""
    sequence = [free.nodes[i] for i in order if free.nodes[i] >= 0]
    nodes = {index: net.nodes[index] for index in sequence}
    index_of = {node.name: i for i, node in enumerate(net.nodes)}
    moved: dict[tuple[int, tuple[int, int]], int] = {}
    for chain in chains(net):
        members = {index_of[node.name] for node in chain}
        now = [i for i in sequence if i in members]
        if chain[0].into is not None:
            _relink(nodes, chain, now, moved)
            continue
        for place, term in zip(chain, now, strict=True):
            nodes[term] = in_place_of(net.nodes[term], place)
    return replace(net, nodes=tuple(_redirected(nodes[i], moved) for i in sequence))


def _relink(
    nodes: dict[int, Node],
    chain: list[Node],
    now: list[int],
    moved: dict[tuple[int, tuple[int, int]], int],
) -> None:
    """Link the terms of a buffer in their new order; the last one outputs the full buffer.

    ``moved`` maps the old value and place of two pieces to their new value.
    """
    last, before = nodes[now[-1]], chain[-1]
    final, freed = before.output, last.output
    base = chain[0].base
    for index in now:
        node = nodes[index]
        output = node.output
        if node.name == last.name:
            output = final
        elif node.name == before.name:
            output = freed
        if output != node.output and node.into is not None:
            moved[node.output, node.into] = output
        nodes[index] = replace(node, base=base, outputs=(output,))
        base = output


def _redirected(node: Node, moved: dict[tuple[int, tuple[int, int]], int]) -> Node:
    if not any(p.part for o in node.operands for p in o.pieces):
        return node

    def again(piece: Piece) -> Piece:
        if piece.part is None:
            return piece
        return replace(piece, value=moved.get((piece.value, piece.part[1:]), piece.value))

    operands = tuple(replace(o, pieces=tuple(map(again, o.pieces))) for o in node.operands)
    return replace(node, operands=operands)


def in_place_of(term: Node, place: Node) -> Node:
    """Return ``term`` of a sum at the position of ``place``."""
    return replace(
        term,
        outputs=place.outputs,
        base=place.base,
        addends=place.addends,
        biases=place.biases,
        tail=place.tail,
        in_place=place.in_place,
    )


def _links(node: Node) -> bool:
    """Return whether an op can be part of a chain."""
    return node.into is not None or (node.kind is Kind.CONV and node.makes is None)


def _alike(left: Node, right: Node) -> bool:
    return (left.into is None) == (right.into is None)


def _wider_sum(net: Net, node: Node) -> bool:
    """Return whether an op writes, in another type, a sum that other ops began."""
    if node.conv is None or node.base is not None or not node.addends or node.into is not None:
        return False
    before = net.maker(node.addends[-1])
    return before is not None and before.conv is not None and before.tail is None


def _base(node: Node) -> int:
    assert node.base is not None
    return node.base
