"""A net in words, one line an op, for tests to compare."""

from tvm_serenity.rewrite.net import Net, Piece


def lines(net: Net) -> list[str]:
    """Return the ops of a net: name, kind, what it reads, what it makes, how."""
    return [_line(net, i) for i in range(len(net.nodes))]


def _line(net: Net, index: int) -> str:
    node = net.nodes[index]

    def piece(p: Piece) -> str:
        part = f"[{p.part[1]}:{p.part[2]}]" if p.part else ""
        return net.values[p.value].name + part + "'" * len(p.through)

    read = " ".join("+".join(map(piece, o.pieces)) for o in node.operands)
    extra = ""
    if node.reads is not None:
        extra += f" reads {node.reads[0]}:{node.reads[1]}"
    if node.into is not None:
        extra += f" into {node.into[0]}:{node.into[1]}"
    if node.addends:
        extra += " plus " + " ".join(net.values[v].name for v in node.addends)
    if node.base is not None:
        extra += f" over {net.values[node.base].name}"
    if node.kind == "conv" and node.tail is None:
        extra += " sum"
    return f"{node.name}: {node.kind} {read} -> {net.values[node.output].name}{extra}"
