"""Residual merging: an add of a convolution's result becomes one more accumulation."""

from dataclasses import replace

from tvm_serenity.rewrite.builder import Builder, Expr
from tvm_serenity.rewrite.net import Kind, Net, Node
from tvm_serenity.rewrite.reach import of_sums
from tvm_serenity.rewrite.rule import Match, Promise, Rule

_NAME = "residual"

_SPECIFICATION = """
1. Pattern: ``add(a, b)`` where ``a`` is the result of a convolution with nothing but a bias, or of
   the sum of partial convolutions that it was split into, and the add is the only reader of ``a``.
2. Result: the convolution (the first partial one) accumulates into ``b``: in ``b``'s own buffer if
   the add is the only reader of ``b`` and an op produces it, else in a new buffer. Bias, and the
   ops after the add, come with the last partial convolution. The add is no op any more.
3. ``a`` is the operand that the network computes later: ``b`` must exist first. If ``b`` is a sum
   of convolutions too, its bias moves to the end, so that all terms form one sum.
4. Promise: equal in exact arithmetic; the sum has another order of terms: exact for integers.
5. Refused: a convolution with an activation of its own, or whose output has another type than its
   sum (requantized sums are rounded twice: no identity); operands of different shapes; an ``a``
   that has other readers or is an output.
"""


def _matches(net: Net) -> list[Match]:
    """Return every add that reads the result of a convolution."""
    result = []
    for node in net.nodes:
        if node.kind is Kind.ADD and len(node.operands) == 2:
            a = _conv_operand(net, node)
            if a is not None:
                result.append(Match(_NAME, node.name))
    return result


def _check(net: Net, match: Match) -> str | None:
    """Return why the add cannot be merged, or None."""
    node = net.find(match.node)
    if node is None or node.kind is not Kind.ADD:
        return "the op no longer exists"
    a = _conv_operand(net, node)
    if a is None:
        return "none of its operands is the result of a convolution"
    return _refusal(net, node, a)


def _apply(net: Net, match: Match) -> Net:
    """Return the net with the add as part of the sum."""
    node = net.nodes[net.index[match.node]]
    a = _conv_operand(net, node)
    assert a is not None
    b = _other(node, a.output)
    chain = _chain_of(net, a)
    head, last = chain[0], chain[-1]
    maker = net.maker(b)
    changed: dict[str, list[Node]] = {node.name: []}
    biases = last.biases
    takes = net.dies_in(b, node) and maker is not None and _is_plain(net, b)
    is_sum = maker is not None and maker.kind is Kind.CONV and maker.into is None
    if takes and maker is not None and is_sum and _is_linear(net, maker):
        biases = (*maker.biases, *biases)
        changed[maker.name] = [replace(maker, biases=())]
    parts = []
    for part in chain:
        new = part
        if part is head:
            new = replace(new, base=b) if takes else replace(new, addends=(*new.addends, b))
        if part is last:
            new = replace(new, biases=biases, tail=node.source, outputs=node.outputs)
        parts.append(new)
    for part in chain:
        changed[part.name] = []
    changed[node.name] = parts
    return net.edit(changed)


def emit(build: Builder, node: Node, term: Expr) -> Expr:
    """Return the op's term added to the sum, with bias and activation after the last term."""
    begun = () if node.base is None or node.into is not None else (node.base,)
    for value in (*node.addends, *begun):
        term = build.sum(build.value(value), term)
    for source in node.biases:
        term = build.bias(source, node, term)
    return term if node.tail is None else build.tail(node.tail, node, term)


def _chain_of(net: Net, last: Node) -> list[Node]:
    """Return the partial convolutions of one sum, first to last, that ends with ``last``."""
    chain = [last]
    while chain[0].base is not None and chain[0].into is None:
        before = net.maker(chain[0].base)
        if before is None or before.kind is not Kind.CONV or before.into is not None:
            break
        chain.insert(0, before)
    return chain


def _is_plain(net: Net, value: int) -> bool:
    """Return whether a value has storage of its own without views."""
    maker = net.maker(value)
    if maker is None or maker.kind is Kind.VIEW:
        return False
    return all(net.nodes[i].kind is not Kind.VIEW for i in net.readers_of(value))


def _conv_operand(net: Net, node: Node) -> Node | None:
    """Return the operand of an add that is the latest convolution, preferably a mergeable one."""
    convolutions = []
    for operand in node.operands:
        maker = net.maker(operand.values[0])
        if len(operand.pieces) == 1 and maker is not None and maker.kind is Kind.CONV:
            convolutions.append(maker)
    if not convolutions:
        return None
    later = max(_node_index(net, v) for o in node.operands for v in o.values)
    return max(
        convolutions,
        key=lambda m: (_refusal(net, node, m) is None, net.index[m.name] == later),
    )


def _node_index(net: Net, value: int) -> int:
    """Return the node that produces a value, -1 for an input."""
    return net.producer.get(value, -1)


def _other(node: Node, value: int) -> int:
    first, second = (o.values[0] for o in node.operands)
    return second if first == value else first


def _is_linear(net: Net, node: Node) -> bool:
    """Return whether the output of a convolution is its sum, in the type of the sum."""
    assert node.conv is not None
    merged = node.tail is not None and node.tail != node.source
    same = net.values[node.output].dtype == node.conv.sum_dtype
    return same and not merged and (node.conv.linear or node.tail is None)


def _refusal(net: Net, node: Node, a: Node) -> str | None:
    assert a.conv is not None
    if any(len(o.pieces) != 1 or not o.pieces[0].direct for o in node.operands):
        return "an operand is read in pieces"
    b = _other(node, a.output)
    if b == a.output:
        return "it adds a tensor to itself"
    if a.conv.pinned:
        return a.conv.pinned
    if a.into is not None:
        return "the convolution writes a part of a buffer"
    if not _is_linear(net, a):
        same = net.values[a.output].dtype == a.conv.sum_dtype
        return (
            "the convolution has an activation of its own, or may have one"
            if same
            else "the convolution's sum is rounded to another type before the add"
        )
    shapes = [net.values[v].shape for v in (a.output, b, node.output)]
    types = [net.values[v].dtype for v in (a.output, b)]
    if shapes[0] != shapes[1] or shapes[0] != shapes[2]:
        return "its operands have different shapes"
    if types[0] != types[1] or types[0] != net.values[node.output].dtype:
        return "its operands have different types"
    if not net.dies_in(a.output, node):
        return f"other ops read {net.values[a.output].name!r}"
    head = _chain_of(net, a)[0]
    if head.base is not None:
        return "the sum begins in another buffer already"
    if not _is_plain(net, a.output):
        return f"{net.values[a.output].name!r} has a view of another shape"
    return None


RULE = Rule(
    name=_NAME,
    exchanges=(
        "an add of a convolution's result: one more term of its sum, in the buffer of the other "
        "operand if that dies there"
    ),
    promise=Promise.RESUMMED,
    specification=_SPECIFICATION,
    matches=_matches,
    check=_check,
    apply=_apply,
    spans=of_sums,
)
