"""Converts the ``Graph`` of a model file to a ``Net``, from operator kinds and shapes alone.

A ``.tflite`` graph is NHWC with weights O H W I (depthwise 1 H W O), an ``.onnx`` graph NCHW with
weights O I H W; operator kinds in upper case mean TFLite. Quantized convolutions accumulate in
int32 (16 bit: int64). Activations of a file are part of its ops. Whether a float convolution of a
``.tflite`` file has one is unknown here, so none counts as linear.
"""

from collections.abc import Sequence

from tvm_serenity.graph import Graph, Op, Role, Tensor
from tvm_serenity.operators import MemoryUse, WeightInput, operator
from tvm_serenity.rewrite.net import Conv, Kind, Net, Node, Operand, Piece, as_owned

_SUMS = {"int8": "int32", "uint8": "int32", "int16": "int64"}


def net_of(graph: Graph) -> Net:
    """Return the net of a graph in its given order; node i is op i, and values are its tensors."""
    operands = [Operand((Piece(t),)) for t in range(len(graph.tensors))]
    nodes = tuple(_node(graph, index, op, operands) for index, op in enumerate(graph.ops))
    net = Net(graph.name, graph.tensors, nodes, graph.inputs, graph.outputs)
    # without overlaps, the graph itself is the instance of the order search
    if not any(op.over for op in graph.ops):
        vars(net)["graph"] = as_owned(graph)
    return net


def _node(graph: Graph, index: int, op: Op, whole: Sequence[Operand]) -> Node:
    """Return the node of an op; ``whole`` holds the operands of a single tensor, by tensor."""
    plain = index not in graph.constant_ops and len(op.outputs) == 1 and op.view_of is None
    if plain and graph.tensors[op.outputs[0]].shape is not None:
        read = [t for t in op.inputs if graph.in_profile[t] or not _is_weight(graph, t)]
        node = _known(graph, index, op, read, whole) if read else None
        if node is not None:
            return node
    kind = Kind.VIEW if op.view_of is not None else Kind.OPAQUE
    inputs = list(dict.fromkeys(op.inputs))
    if op.view_of is not None:
        inputs = [op.view_of, *(t for t in inputs if t != op.view_of)]
    operands = tuple([whole[t] for t in inputs])
    why = f"the kernel of {op.kind} is not known"
    return Node(
        op.name,
        kind,
        operands,
        op.outputs,
        index,
        in_place=op.in_place,
        why_opaque=why,
        workspace_bytes=op.workspace_bytes,
    )


def _is_weight(graph: Graph, tensor: int) -> bool:
    role = graph.tensors[tensor].role
    return role is Role.CONSTANT or graph.producer[tensor] in graph.constant_ops


def _known(
    graph: Graph, index: int, op: Op, read: list[int], whole: Sequence[Operand]
) -> Node | None:
    """Return the node of an op whose kind the rules know, else None."""
    operands = tuple(whole[t] for t in read)
    made, known = graph.tensors[op.outputs[0]], operator(op.kind)
    shapes = [graph.tensors[t].shape for t in read]
    if (
        made.shape is None
        or None in shapes
        or any(graph.tensors[t].role is Role.STATE for t in read)
    ):
        return None

    def node(
        kind: Kind, axis: int | None, *, separate: bool = False, conv: Conv | None = None
    ) -> Node:
        return Node(
            op.name,
            kind,
            operands,
            op.outputs,
            index,
            axis,
            conv,
            separate,
            biases=(index,) if conv else (),
            tail=index,
            in_place=op.in_place,
            workspace_bytes=op.workspace_bytes,
            cheap=known.elements.cheap,
        )

    weights = known.layer.weights
    if weights is not None and read[0] == op.inputs[0] and len(made.shape) == 4:
        conv = _conv(graph, op, weights, made)
        if conv is None or (len(read) > 1 and not conv.pinned):
            return None
        separate = conv.groups > 1 and len(read) == 1
        return node(Kind.CONV, weights.channels, separate=separate, conv=conv)
    if known.layer.channel is not None and len(read) == 1 and len(made.shape) == 4:
        return node(Kind.POOL, known.layer.channel, separate=True)
    if known.storage.use is MemoryUse.CONCAT:
        joined = _joined_axis(made, [graph.tensors[t] for t in op.inputs])
        if joined is not None and list(op.inputs) == [t for t in op.inputs if graph.in_profile[t]]:
            pieces = tuple(Piece(t) for t in op.inputs)
            return Node(op.name, Kind.CONCAT, (Operand(pieces, joined),), op.outputs, index, joined)
    same = len(read) == 1 and graph.tensors[read[0]].size_bytes == made.size_bytes
    if known.storage.use is MemoryUse.COPY and same:
        return node(Kind.COPY, None)
    if known.storage.use is MemoryUse.ELEMENTWISE and all(shape == made.shape for shape in shapes):
        last = 3 if op.kind[:2].isupper() else 1
        channel = last if len(made.shape) == 4 else None
        if len(read) == 1:
            return node(Kind.MAP, channel, separate=channel is not None)
        if len(read) == 2 and read[0] != read[1]:
            return node(Kind.ADD if known.elements.adds else Kind.MAP, channel)
    return None


def _conv(graph: Graph, op: Op, weights: WeightInput, made: Tensor) -> Conv | None:
    x, inner = op.inputs[0], weights.inputs
    shape = graph.tensors[x].shape
    if len(op.inputs) <= weights.operand or shape is None or len(shape) != 4:
        return None
    held = op.inputs[weights.operand]
    weight = graph.tensors[held].shape
    if weight is None or len(weight) != 4:
        return None
    channels, dtype = shape[weights.channels], graph.tensors[x].dtype
    groups = channels if inner is None else channels // max(weight[inner], 1)
    pinned = "" if _is_weight(graph, held) else "its weights are not constants"
    linear = not weights.finished and dtype == made.dtype
    sums = _SUMS.get(dtype, dtype)
    return Conv(groups, channels, weight[weights.outputs], sums, linear, pinned)


def _joined_axis(made: Tensor, parts: list[Tensor]) -> int | None:
    """Return the axis along which tensors were concatenated, derived from their shapes."""
    shape = made.shape
    if shape is None or len(parts) < 2:
        return None
    for axis in range(len(shape)):
        total = 0
        for part in parts:
            if part.shape is None or len(part.shape) != len(shape):
                return None
            if any(
                p != s for i, (p, s) in enumerate(zip(part.shape, shape, strict=True)) if i != axis
            ):
                break
            total += part.shape[axis]
        else:
            if total == shape[axis]:
                return axis
    return None
