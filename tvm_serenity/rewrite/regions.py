"""Independent parts of a net: what no rewrite reaches across can be optimised by itself.

An op that every other op must run before or after (``schedule.partition``) fixes what has run
around it; so the bytes at that point are the same in every order. A rewrite that takes ops from
both sides would end that, so a cut is made only where no possible match reaches across.
"""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.graph import Role, Tensor
from tvm_serenity.rewrite.net import Kind, Net, Node
from tvm_serenity.schedule.partition import waists
from tvm_serenity.schedule.problem import problem_of


def regions(net: Net) -> list[Net]:
    """Return consecutive parts of ``net``, in its order; values keep their numbers.

    What a part does not touch but others keep across it is one input that stays to the end.
    """
    ends = _cuts(net)
    starts = [0, *ends][: len(ends)]
    return [_part(net, s, e) for s, e in zip(starts, ends, strict=True)]


def stitched(net: Net, parts: Sequence[Net]) -> Net:
    """Return ``net`` with its regions replaced by what ``parts`` became, one after the other."""
    values = list(net.values)
    known = len(net.values)
    nodes: list[Node] = []
    for part in parts:
        extra = part.values[known + 1 :]  # the first one more is what the part holds throughout
        shift = len(values) - known - 1
        values += extra
        nodes += [_renumbered(node, known, shift) for node in part.nodes]
    return replace(net, values=tuple(values), nodes=tuple(nodes))


def _cuts(net: Net) -> list[int]:
    problem = problem_of(net.graph)
    reach = _reaches(net)
    crossed = [False] * (len(net.nodes) + 1)
    for low, high in reach:
        for position in range(max(low, 0), high):
            crossed[position] = True
    ends = [problem.ops[w] + 1 for w in waists(problem) if not crossed[problem.ops[w]]]
    if not ends or ends[-1] != len(net.nodes):
        ends.append(len(net.nodes))
    return ends


def _reaches(net: Net) -> list[tuple[int, int]]:
    """For each op that rules may change: from the first op after which it could run, to itself.

    Position p is crossed if ``low <= p < high``.
    """
    result = []
    for i, node in enumerate(net.nodes):
        if node.kind in (Kind.CONCAT, Kind.ADD) or _in_pieces(net, node):
            made = [net.producer.get(v, -1) for v in node.inputs]
            low = min(made) + (0 if node.kind is Kind.ADD else 1)
            result.append((low, _last_reader(net, i)))
    return result


def _in_pieces(net: Net, node: Node) -> bool:
    return any(len(o.pieces) > 1 for o in node.operands)


def _last_reader(net: Net, index: int) -> int:
    """The last op that a concat could be moved down to from ``index``."""
    node = net.nodes[index]
    if not (node.kind in (Kind.CONCAT, Kind.VIEW) or node.separate):
        return index
    readers = [i for v in node.outputs for i in net.readers_of(v)]
    return max([index, *(_last_reader(net, i) for i in readers)])


def _part(net: Net, start: int, end: int) -> Net:
    nodes = net.nodes[start:end]
    made = {v for n in nodes for v in n.outputs}
    read = dict.fromkeys(v for n in nodes for v in n.inputs)
    storage = net.graph.storage
    later = {v for n in net.nodes[end:] for v in n.inputs} | set(net.outputs)
    later_roots = {storage[v] for v in later}
    inputs = [v for v in read if v not in made and not _constant(net, v)]
    outputs = [v for v in (*inputs, *made) if v in later or storage[v] in later_roots]
    touched = {storage[v] for v in (*made, *read)}
    held = sum(
        net.values[v].size_bytes
        for v in {storage[w] for w in later} - touched
        if net.graph.in_profile[v] and _made_at(net, v) < start
    )
    values = (*net.values, Tensor("held", held))
    extra = len(net.values)
    return replace(
        net,
        values=values,
        nodes=nodes,
        inputs=(*inputs, extra),
        outputs=(*sorted(outputs), extra),
    )


def _made_at(net: Net, value: int) -> int:
    return net.producer.get(value, -1)


def _constant(net: Net, value: int) -> bool:
    return net.values[value].role is Role.CONSTANT


def _renumbered(node: Node, known: int, shift: int) -> Node:
    def number(value: int) -> int:
        return value if value < known else value + shift

    return replace(
        node,
        operands=tuple(
            replace(o, pieces=tuple(replace(p, value=number(p.value)) for p in o.pieces))
            for o in node.operands
        ),
        outputs=tuple(map(number, node.outputs)),
        base=None if node.base is None else number(node.base),
        addends=tuple(map(number, node.addends)),
        in_place=tuple(map(number, node.in_place)),
    )
